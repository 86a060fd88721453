"""What a scrape asks the database beside the lag of numbering: what holds it up, and the mail."""

from collections.abc import Awaitable, Callable, Sequence

from service.core.clock import Clock
from service.ledger.database import Database
from service.ledger.sql import queries
from service.operations.metrics import Metrics

_SQL = queries("service.operations.collectors")


def watches(
    accounts: Database, live: Database, clock: Clock
) -> Sequence[Callable[[Metrics], Awaitable[None]]]:
    """Return what is asked at each scrape; each raises LedgerUnavailable."""

    async def transactions(metrics: Metrics) -> None:
        row = await accounts.fetchrow(_SQL.oldest_transaction)
        metrics.oldest_transaction(row["seconds"] if row else 0.0)

    async def mail(metrics: Metrics) -> None:
        row = await live.fetchrow(_SQL.outbox_backlog)
        if row is not None:
            oldest = (clock() - row["oldest_at"]).total_seconds() if row["oldest_at"] else 0.0
            metrics.mails("onboarding", row["waiting"], max(0.0, oldest), row["failed"])

    async def sign_in_mail(metrics: Metrics) -> None:
        row = await accounts.fetchrow(_SQL.mail_backlog)
        if row is not None:
            metrics.mails("sign_in", row["waiting"], row["oldest_seconds"], row["failed"])

    return [transactions, mail, sign_in_mail]
