"""Collectors of what else the database knows: old transactions, and what waits."""

from datetime import datetime
from typing import Final

from service.core.clock import Clock
from service.ledger.database import Database
from service.ledger.sql import queries
from service.operations.collectors.snapshots import SnapshotWatch
from service.operations.gauges import Collector, Figure, ScrapedGauges

_MAILS: Final = ("waiting", "failed", "withheld")
_ENDPOINTS: Final = ("active", "failing", "disabled")

_SQL = queries("service.operations.collectors")


def database_collectors(accounts: Database, live: Database, clock: Clock) -> list[Collector]:
    """Return the collectors; mail is of `live`, or of `accounts` like that to sign in."""
    snapshots = SnapshotWatch(accounts, clock)  # kept: it compares one scrape with others

    async def transactions(gauges: ScrapedGauges) -> None:
        gauges.set("oldest_transaction_seconds", await snapshots.look())

    async def outboxes(gauges: ScrapedGauges) -> None:
        (onboarding,) = await live.reads.fetch(_SQL.outbox_backlog, False)
        notices = [
            row
            for ledger in (live, accounts)
            for row in await ledger.reads.fetch(_SQL.outbox_backlog, True)
        ]
        for kind, rows in (("onboarding", [onboarding]), ("notice", notices)):
            sums = {name: sum(row[name] for row in rows) for name in ("waiting", "failed")}
            age = max(_age(row["oldest_at"], clock()) for row in rows)
            _set_mails(gauges, kind, sums["waiting"], sums["failed"], age)
            gauges.set("mails", sum(row["withheld"] for row in rows), kind, "withheld")

    async def sign_in_mail(gauges: ScrapedGauges) -> None:
        row = await accounts.reads.fetchrow(_SQL.mail_backlog)
        if row is not None:
            _set_mails(gauges, "sign_in", row["waiting"], row["failed"], row["oldest_seconds"])

    async def hand_overs(gauges: ScrapedGauges) -> None:
        row = await live.reads.fetchrow(_SQL.hand_over_backlog)
        if row is not None:
            gauges.set("hand_overs", row["waiting"])
            gauges.set("oldest_hand_over_seconds", _age(row["oldest_at"], clock()))

    async def document_checks(gauges: ScrapedGauges) -> None:
        row = await live.reads.fetchrow(_SQL.document_check_oldest)
        gauges.set("oldest_document_check_seconds", row["seconds"] if row else 0.0)

    return [
        Collector("transactions", [("oldest_transaction_seconds",)], transactions),
        Collector("outboxes", [*_of_mail("onboarding"), *_of_mail("notice")], outboxes),
        Collector("sign_in_mail", _of_mail("sign_in", *_MAILS[:2]), sign_in_mail),
        Collector("hand_overs", [("hand_overs",), ("oldest_hand_over_seconds",)], hand_overs),
        Collector("document_checks", [("oldest_document_check_seconds",)], document_checks),
    ]


def webhook_collector(ledger: str, database: Database) -> Collector:
    """Return the collector of a mode's webhooks."""

    async def collect(gauges: ScrapedGauges) -> None:
        row = await database.reads.fetchrow(_SQL.webhooks)
        if row is not None:
            for state in _ENDPOINTS:
                gauges.set("webhook_endpoints", row[state], ledger, state)
            gauges.set("oldest_webhook_seconds", row["oldest_seconds"], ledger)

    return Collector(
        f"{ledger}.webhooks",
        [
            *(("webhook_endpoints", ledger, state) for state in _ENDPOINTS),
            ("oldest_webhook_seconds", ledger),
        ],
        collect,
    )


def _of_mail(kind: str, *states: str) -> list[Figure]:
    """Return the figures of a kind of mail."""
    shown = [("mails", kind, state) for state in states or _MAILS]
    return [*shown, ("oldest_mail_seconds", kind)]


def _age(at: datetime | None, now: datetime) -> float:
    return 0.0 if at is None else max(0.0, (now - at).total_seconds())


def _set_mails(
    gauges: ScrapedGauges, kind: str, waiting: int, failed: int, oldest_seconds: float
) -> None:
    gauges.set("mails", waiting, kind, "waiting")
    gauges.set("mails", failed, kind, "failed")
    gauges.set("oldest_mail_seconds", oldest_seconds, kind)
