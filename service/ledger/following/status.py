"""How read models and subscribers are doing, and whether the log's head moves at all."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from service.core.clock import Clock
from service.ledger.codec import happened_at
from service.ledger.database import Row
from service.ledger.ledger import Ledger
from service.ledger.read_model import ReadModel
from service.ledger.sequencer import Lag, Sequencer
from service.ledger.sql import queries

STALLED_SECONDS: float = 5.0
"""An event that waits for its number this long, while the head stands still: nobody numbers."""
WATCH_SECONDS: float = 1.0
"""How long the head is watched before it counts as standing still. A sequencer's longest pause is
half a second."""

AHEAD = "ahead of the log"
"""The log lacks the event that a subscriber came to: it was cut, or restored from before."""

_SQL = queries("service.ledger.following")


class Progress(NamedTuple):
    """A read model or subscriber of one ledger.

    `version` is that of its rows, `code_version` that of the code; None where there are no rows.
    `lag_events` counts events it has not handled, those without a number included; `lag_seconds` is
    the age of the oldest of them. Inline rows are written with their events: they cannot lag.
    `oldest_pending_seconds` and `is_stalled` are its ledger's. `fault` says what an operator has to
    decide.
    """

    ledger: str
    name: str
    kind: Literal["inline", "catch-up", "effect"]
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


class HeadWatch:
    """Notices that a head stands still while events wait, over more than one look.

    Comparing positions alone would stay green for ever when the sequencer is frozen.
    """

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        """`clock` is the one that events take their time from."""
        self._sequencer = Sequencer(ledger.database)
        self._name = ledger.name
        self._clock = clock
        self._seen: tuple[int, datetime] | None = None

    async def look(self) -> Head:
        """Return the head; it is stalled when it stood still since a look a while ago."""
        return self._head(await self._sequencer.lag())

    async def watch(self) -> Head:
        """Do the same, looking twice where that is needed to tell."""
        head = await self.look()
        if head.oldest_pending_seconds < STALLED_SECONDS:
            return head
        await asyncio.sleep(WATCH_SECONDS)
        return await self.look()

    def _head(self, lag: Lag) -> Head:
        now = self._clock()
        # Of a damaged event the time is unknown: then it is for the head to show that it moves.
        unknown = STALLED_SECONDS if lag.waiting else 0.0
        age = max(0.0, (now - lag.oldest_at).total_seconds()) if lag.oldest_at else unknown
        if self._seen is None or self._seen[0] != lag.size or not lag.waiting:
            self._seen = (lag.size, now)
        stood = (now - self._seen[1]).total_seconds()
        is_stalled = age >= STALLED_SECONDS and stood >= WATCH_SECONDS
        return Head(self._name, lag.size, lag.waiting, round(age, 3), is_stalled)


async def progress(
    ledger: Ledger, models: Sequence[ReadModel], head: Head, clock: Clock
) -> list[Progress]:
    """Return every read model and subscriber of one ledger, read models first."""
    versions = {
        row["name"]: row["version"] for row in await ledger.database.fetch(_SQL.status_versions)
    }
    rows = {row["name"]: row for row in await ledger.database.fetch(_SQL.status_subscriptions)}
    ours = {model.name: model for model in models if model.ledger.name == ledger.name}
    answer: list[Progress] = []
    for name, model in ours.items():
        of_code = model.projector.version
        made_by = versions.get(name, 1)  # rows that nothing rebuilt yet are of the first version
        if model.kind == "inline":
            found = Progress(
                ledger.name,
                name,
                "inline",
                version=made_by,
                code_version=of_code,
                position=head.size,
                lag_events=0,
                lag_seconds=0.0,
                oldest_pending_seconds=head.oldest_pending_seconds,
                is_stalled=head.is_stalled,
            )
        else:
            found = _behind(ledger.name, name, rows.get(name), head, clock())
            found = found._replace(kind="catch-up", version=made_by, code_version=of_code)
        answer.append(found)
    return answer + [
        _behind(ledger.name, name, row, head, clock())
        for name, row in rows.items()
        if name not in ours
    ]


def _behind(ledger: str, name: str, row: Row | None, head: Head, now: datetime) -> Progress:
    position = row["position"] if row else 0
    age = head.oldest_pending_seconds
    at = happened_at(row["next"]) if row else None
    if at is not None:
        age = max(age, (now - at).total_seconds())
    return Progress(
        ledger,
        name,
        "effect",
        version=None,
        code_version=None,
        position=position,
        lag_events=max(0, head.size - position) + head.pending,
        lag_seconds=round(max(0.0, age), 3),
        oldest_pending_seconds=head.oldest_pending_seconds,
        is_stalled=head.is_stalled,
        parked=row["parked"] if row else 0,
        fault=AHEAD if row and row["is_lost"] else None,
    )
