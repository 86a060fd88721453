"""What a scrape asks the database beside the lag of numbering: what holds it up, and the mail."""

from collections.abc import Awaitable, Callable, Sequence

from service.clock import Clock
from service.ledger.database import Database
from service.ledger.sql import Sql
from service.web.metrics import Metrics

_OLDEST_TRANSACTION = Sql("service.ledger", "oldest_transaction")
_BACKLOG = Sql("service.mail", "outbox_backlog")
_SIGN_IN_BACKLOG = Sql("service.people", "mail_backlog")


def watches(
    accounts: Database, live: Database, clock: Clock
) -> Sequence[Callable[[Metrics], Awaitable[None]]]:
    """Answer what is asked at each scrape; each raises LedgerUnavailable."""

    async def transactions(metrics: Metrics) -> None:
        row = await accounts.fetchrow(_OLDEST_TRANSACTION)
        metrics.oldest_transaction(row["seconds"] if row else 0.0)

    async def mail(metrics: Metrics) -> None:
        row = await live.fetchrow(_BACKLOG)
        if row is not None:
            oldest = (clock() - row["oldest_at"]).total_seconds() if row["oldest_at"] else 0.0
            metrics.mails("onboarding", row["waiting"], max(0.0, oldest), row["failed"])

    async def sign_in_mail(metrics: Metrics) -> None:
        row = await accounts.fetchrow(_SIGN_IN_BACKLOG)
        if row is not None:
            metrics.mails("sign_in", row["waiting"], row["oldest_seconds"], row["failed"])

    return [transactions, mail, sign_in_mail]
