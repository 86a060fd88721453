"""The events that the rows kept by a rebuild lack, so that a rollback can park them again.

The table `parked` holds the events that the live rows of a catch-up read model lack. Those that its
kept rows lack are in a table beside them, `<ledger>_previous.<name>_parked`: retries, and rebuilds
that park, change one of the two and not the other.
"""

from collections.abc import Sequence
from uuid import UUID

from service.ledger.database import Connection
from service.ledger.projector import arrays
from service.ledger.read_model import ReadModel
from service.ledger.rebuild.progress import BuildProgress, SkippedEvent
from service.ledger.rebuild.shadow import give_rights

_MAKE = "create table {} (like {} including all)"
_STREAMS = "select distinct stream_id from {} where read_model = $1"
_COPY = """
insert into {} (read_model, position, stream_id, error, parked_at)
select read_model, position, stream_id, error, parked_at from {}
where read_model = $1 and position > $2 and position <= $3
on conflict do nothing
"""
_PUT = """
insert into {} (read_model, position, stream_id, error, parked_at)
select $1, position, stream_id, error, clock_timestamp()
from unnest($2::bigint[], $3::uuid[], $4::text[]) as one (position, stream_id, error)
on conflict do nothing
"""
_FORGET = "delete from {} where read_model = $1 and position <= $2"


class ParkedSets:
    """The parked events of the live and of the kept rows of a catch-up read model."""

    def __init__(self, model: ReadModel, connection: Connection) -> None:
        self._model = model
        self._connection = connection
        self._live = f"{model.ledger.name}.parked"
        self._kept = f"{model.previous_schema}.{model.name}_parked"
        self._next = f"{model.next_schema}.{model.name}_parked"

    async def streams_kept(self) -> frozenset[UUID]:
        """Return the streams with events that the kept rows lack."""
        rows = await self._connection.fetch(_STREAMS.format(self._kept), self._model.name)
        return frozenset(row["stream_id"] for row in rows)

    async def pass_over(self, after: int, progress: BuildProgress) -> None:
        """Record what the kept rows lack of a range of the log that was applied to them."""
        await self._copy(self._live, self._kept, after, progress.position)
        passed = [one for one in progress.skipped if one.position > after]
        await self._put(self._kept, passed)

    async def exchange(self, progress: BuildProgress, back_from: int | None) -> None:
        """Park what the new live rows lack, and note what those lack that are kept now.

        All are at the progress's position. `back_from`: the kept rows become live and were at that
        one, else the new rows are rebuilt ones, which lack what is parked. Both lack what was
        skipped, too.
        """
        await self._connection.execute(_MAKE.format(self._next, self._live))
        await give_rights(self._connection, self._live, self._next)
        await self._copy(self._live, self._next, 0, progress.position)
        if back_from is not None:  # what was parked after that is passed over, and stays parked
            await self._connection.execute(_FORGET.format(self._live), self._model.name, back_from)
            await self._copy(self._kept, self._live, 0, progress.position)
        await self._put(self._live, progress.skipped)
        await self._connection.execute(f"drop table if exists {self._kept}")
        await self._connection.execute(
            f"alter table {self._next} set schema {self._model.previous_schema}"
        )

    async def _copy(self, source: str, target: str, after: int, up_to: int) -> None:
        await self._connection.execute(_COPY.format(target, source), self._model.name, after, up_to)

    async def _put(self, table: str, skipped: Sequence[SkippedEvent]) -> None:
        if skipped:
            await self._connection.execute(_PUT.format(table), self._model.name, *arrays(skipped))
