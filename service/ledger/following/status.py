"""The progress of read models and subscribers, and whether the log's head moves at all."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from service.core.clock import Clock
from service.ledger.codec import happened_at
from service.ledger.database import Row, always
from service.ledger.ledger import Ledger
from service.ledger.read_model import Kind, ReadModel
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries

STALLED_SECONDS: float = 5.0
"""If an event waits this long for its number while the head does not move, no process numbers."""
WATCH_SECONDS: float = 1.0
"""How long the head is watched before it counts as standing still. A sequencer's longest pause is
half a second."""

AHEAD = "ahead of the log"
"""The log lacks the event that a subscriber came to: it was cut, or restored from before."""

STANDBY = "PostgreSQL takes no writes: it is a standby"
SET_READ_ONLY = "PostgreSQL takes no writes: somebody set default_transaction_read_only"

LATER = (
    "its rows are said to be of version {}, and this release makes version {}: a later release "
    "made them, or that was altered. `projections rebuild` makes them again"
)
"""Which version made rows is itself a row: it may be believed only as far as the code goes."""

_SQL = queries("service.ledger.following")


class Progress(NamedTuple):
    """The progress of a read model or subscriber of one ledger.

    `version` is that of its rows, None without rows; `code_version` is that of the code.
    `lag_events` is the number of events it has not handled, including those without a number;
    `lag_seconds` is the age of the oldest of them. Inline rows are written with their events: they
    cannot lag. `oldest_pending_seconds` and `is_stalled` are its ledger's. `fault` is a problem
    that an operator has to decide on.
    """

    ledger: str
    name: str
    kind: Kind | Literal["effect"]
    version: int | None
    code_version: int | None
    position: int
    lag_events: int
    lag_seconds: float
    oldest_pending_seconds: float
    is_stalled: bool
    parked: int = 0
    fault: str | None = None


class Head(NamedTuple):
    """A ledger's log: its size, the events that wait for a number, the age of the oldest."""

    ledger: str
    size: int
    pending: int
    oldest_pending_seconds: float
    is_stalled: bool


class Foreign(NamedTuple):
    """How many events a ledger has set aside as not written by this service: ever, and in a day.

    `is_bound`: an event without a MAC gets no number.
    """

    set_aside: int
    set_aside_lately: int
    is_bound: bool


async def foreign(ledger: Ledger) -> Foreign:
    """Return what was set aside in a ledger, and whether what has no MAC would be."""
    row = always(await ledger.database.reads.fetchrow(_SQL.status_set_aside))
    is_bound = bool((await ledger.binding()).boundaries)
    return Foreign(row["ever"], row["lately"], is_bound)


async def read_only(ledger: Ledger) -> str | None:
    """Return why PostgreSQL refuses every write of a ledger; None where it does not.

    Reading goes on meanwhile, so nothing else that only reads would notice.
    """
    row = always(await ledger.database.background.fetchrow(_SQL.status_read_only))
    if not row["is_read_only"]:
        return None
    return STANDBY if await is_standby(ledger) else SET_READ_ONLY


async def is_standby(ledger: Ledger) -> bool:
    """Return whether a ledger's server is a standby, which may not have all that there is."""
    row = always(await ledger.database.background.fetchrow(_SQL.status_standby))
    return row["in_hot_standby"] == "on"


class HeadWatch:
    """Detects that a head does not move while events wait, over more than one call.

    A comparison of positions alone would never detect a frozen sequencer.
    """

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        """`clock` is the one that events take their time from."""
        self._sequencer = Sequencer(ledger)
        self._name = ledger.name
        self._clock = clock
        self._seen: tuple[int, datetime] | None = None

    async def look(self) -> Head:
        """Return the head; it is stalled if it has not moved since an earlier look."""
        lag, now = await self._sequencer.lag(), self._clock()
        # The time of a damaged event is unknown: then the head alone shows whether it moves.
        unknown = STALLED_SECONDS if lag.waiting else 0.0
        age = max(0.0, (now - lag.oldest_at).total_seconds()) if lag.oldest_at else unknown
        if self._seen is None or self._seen[0] != lag.size or not lag.waiting:
            self._seen = (lag.size, now)
        stood = (now - self._seen[1]).total_seconds()
        is_stalled = age >= STALLED_SECONDS and stood >= WATCH_SECONDS
        return Head(self._name, lag.size, lag.waiting, round(age, 3), is_stalled)

    async def watch(self) -> Head:
        """Return the head, after a second look where it may have stalled."""
        head = await self.look()
        if head.oldest_pending_seconds < STALLED_SECONDS:
            return head
        await asyncio.sleep(WATCH_SECONDS)
        return await self.look()


async def progress(
    ledger: Ledger, models: Sequence[ReadModel], head: Head, clock: Clock
) -> list[Progress]:
    """Return the progress of every read model and subscriber of one ledger, read models first."""
    versions = {
        row["name"]: row["version"]
        for row in await ledger.database.reads.fetch(_SQL.status_versions)
    }
    rows = {
        row["name"]: row for row in await ledger.database.reads.fetch(_SQL.status_subscriptions)
    }
    found: list[Progress] = []
    for model in (model for model in models if model.ledger.name == ledger.name):
        one = _progress(head, model.name, model.kind, rows.pop(model.name, None), clock())
        version = versions.get(model.name, 1)  # that of rows which nothing rebuilt yet
        ours = model.projector.version
        fault = one.fault if version <= ours else LATER.format(version, ours)
        found.append(one._replace(version=version, code_version=ours, fault=fault))
    effects = [_progress(head, name, "effect", row, clock()) for name, row in rows.items()]
    return found + effects


def _progress(
    head: Head, name: str, kind: Kind | Literal["effect"], row: Row | None, now: datetime
) -> Progress:
    is_abreast = kind == "inline"
    row = None if is_abreast else row
    position = head.size if is_abreast else row["position"] if row else 0
    at = happened_at(row["next"]) if row else None
    age = max(head.oldest_pending_seconds, (now - at).total_seconds() if at else 0.0)
    return Progress(
        head.ledger,
        name,
        kind,
        version=None,
        code_version=None,
        position=position,
        lag_events=0 if is_abreast else max(0, head.size - position) + head.pending,
        lag_seconds=0.0 if is_abreast else round(age, 3),
        oldest_pending_seconds=head.oldest_pending_seconds,
        is_stalled=head.is_stalled,
        parked=row["parked"] if row else 0,
        fault=AHEAD if row and row["is_lost"] else None,
    )
