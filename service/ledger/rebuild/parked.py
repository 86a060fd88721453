"""What the rows that a rebuild keeps have put aside, so that a rollback can park it again.

`parked` tells what the live rows of a catch-up read model lack. What its kept rows lack is in a
table beside them, `<ledger>_previous.<name>_parked`: retries, and rebuilds that park, change the
one and not the other.
"""

from collections.abc import Sequence
from uuid import UUID

from service.ledger.database import Connection
from service.ledger.read_model import ReadModel
from service.ledger.rebuild.shadow import QualifiedName, give_rights
from service.ledger.rebuild.skipped import SkippedEvent

_MAKE = "create table {} (like {} including all)"
_STREAMS = "select distinct stream_id from {} where read_model = $1"
_COPY = """
insert into {} select * from {}
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
    """What the live and the kept rows of a catch-up read model have put aside."""

    def __init__(self, model: ReadModel) -> None:
        """Nothing is read or made yet."""
        self._name = model.name
        beside = f"{model.name}_parked"
        self._live = QualifiedName(model.ledger.name, "parked")
        self._kept = QualifiedName(model.previous_schema, beside)
        self._next = QualifiedName(model.next_schema, beside)

    async def streams_kept(self, connection: Connection) -> set[UUID]:
        """Return the streams of which the kept rows lack events."""
        rows = await connection.fetch(_STREAMS.format(self._kept), self._name)
        return {row["stream_id"] for row in rows}

    async def pass_over(
        self, connection: Connection, after: int, up_to: int, aside: Sequence[SkippedEvent]
    ) -> None:
        """Note what the kept rows lack of a range of the log that was applied to them."""
        await self._copy(connection, self._live, self._kept, after, up_to)
        await self._put(connection, self._kept, [one for one in aside if one.position > after])

    async def exchange(
        self,
        connection: Connection,
        position: int,
        back_from: int | None,
        aside: Sequence[SkippedEvent],
    ) -> None:
        """Make what the new live rows lack parked, and note what those lack that are kept now.

        All are at `position`. `back_from`: the kept rows become live and were at that one, else
        the new rows are rebuilt ones, which lack what is parked. Both lack `aside`, too.
        """
        await self._make(connection, self._next)
        await self._copy(connection, self._live, self._next, 0, position)
        if back_from is not None:  # what was parked after that is passed over, and stays parked
            await connection.execute(_FORGET.format(self._live), self._name, back_from)
            await self._copy(connection, self._kept, self._live, 0, position)
        await self._put(connection, self._live, aside)
        await connection.execute(f"drop table if exists {self._kept}")
        await connection.execute(f"alter table {self._next} set schema {self._kept.schema}")

    async def _make(self, connection: Connection, table: QualifiedName) -> None:
        await connection.execute(_MAKE.format(table, self._live))
        await give_rights(connection, self._live, table)

    async def _copy(
        self,
        connection: Connection,
        source: QualifiedName,
        target: QualifiedName,
        after: int,
        up_to: int,
    ) -> None:
        await connection.execute(_COPY.format(target, source), self._name, after, up_to)

    async def _put(
        self, connection: Connection, table: QualifiedName, aside: Sequence[SkippedEvent]
    ) -> None:
        if aside:
            columns = [list(column) for column in zip(*aside, strict=True)]
            await connection.execute(_PUT.format(table), self._name, *columns)
