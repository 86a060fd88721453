"""Collectors of what else the database knows: the oldest transaction, and mail that waits."""

from service.core.clock import Clock
from service.ledger.database import Database
from service.ledger.sql import queries
from service.operations.gauges import Collector, ScrapedGauges

_SQL = queries("service.operations.collectors")


def database_collectors(accounts: Database, live: Database, clock: Clock) -> list[Collector]:
    """Return the collectors; mail to customers is of `live`, sign-in mail of `accounts`."""

    async def transactions(gauges: ScrapedGauges) -> None:
        row = await accounts.reads.fetchrow(_SQL.oldest_transaction)
        gauges.set("oldest_transaction_seconds", row["seconds"] if row else 0.0)

    async def onboarding_mail(gauges: ScrapedGauges) -> None:
        row = await live.reads.fetchrow(_SQL.outbox_backlog)
        if row is not None:
            age = (clock() - row["oldest_at"]).total_seconds() if row["oldest_at"] else 0.0
            _set_mails(gauges, "onboarding", row["waiting"], row["failed"], max(0.0, age))

    async def sign_in_mail(gauges: ScrapedGauges) -> None:
        row = await accounts.reads.fetchrow(_SQL.mail_backlog)
        if row is not None:
            _set_mails(gauges, "sign_in", row["waiting"], row["failed"], row["oldest_seconds"])

    return [transactions, onboarding_mail, sign_in_mail]


def _set_mails(
    gauges: ScrapedGauges, kind: str, waiting: int, failed: int, oldest_seconds: float
) -> None:
    gauges.set("mails", waiting, kind, "waiting")
    gauges.set("mails", failed, kind, "failed")
    gauges.set("oldest_mail_seconds", oldest_seconds, kind)
