"""Wrapping keys anew under the newest master key, while the service runs. The log is not touched.

A batch is read, wrapped and written in one short transaction that holds its rows; whatever ends in
between is taken up by the next run. Keys are only ever inserted and deleted by others.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple
from uuid import UUID

from service.ledger.database import Connection, Database, Row
from service.ledger.encryption import KeyUnknown, MasterKeys
from service.ledger.sql import Sql, queries

BATCH: Final = 500
_SQL: Final = queries("service.privacy")
ROUNDS_MAX: Final = 3
"""Processes that still use an older ring add keys under it meanwhile: they may go on for ever."""


class Kept(NamedTuple):
    """A table of keys, or addresses, that are wrapped; `first` sorts before every name in it."""

    name: str
    first: str
    take: Sql
    write: Sql
    wrapped: Sql

    def bound_to(self, name: str) -> bytes:
        """Return what the wrapping of a key is bound to."""
        return UUID(name).bytes if self.name == "data_keys" else name.encode()


DATA_KEYS: Final = Kept(
    "data_keys",
    str(UUID(int=0)),
    _SQL.rotate_data_keys,
    _SQL.rotate_data_keys_write,
    _SQL.wrapped_data_keys,
)
SESSIONS: Final = Kept(
    "sessions",
    "",
    _SQL.rotate_sessions,
    _SQL.rotate_sessions_write,
    _SQL.wrapped_sessions,
)
SIGN_IN_LINKS: Final = Kept(
    "sign_in_links",
    "",
    _SQL.rotate_sign_in_links,
    _SQL.rotate_sign_in_links_write,
    _SQL.wrapped_sign_in_links,
)
SERVICE_KEYS: Final = Kept(
    "service_keys",
    "",
    _SQL.rotate_service_keys,
    _SQL.rotate_service_keys_write,
    _SQL.wrapped_service_keys,
)


class RotationOutcome(NamedTuple):
    """What became of a table's keys: `wrapped` counts them by master key as they are now.

    `unopened` counts those that the ring does not open, by the master key that wrapped them.
    """

    rewrapped: int
    wrapped: Counter[str]
    unopened: Counter[str]


class Rotation:
    """Wraps one table's keys anew."""

    def __init__(self, database: Database, kept: Kept, ring: MasterKeys) -> None:
        """`ring` holds the newest master key and those before it."""
        self._database = database
        self._kept = kept
        self._ring = ring

    async def older(self) -> int:
        """Return how many keys are not wrapped by the newest master key."""
        wrapped = await self._counts()
        return wrapped.total() - wrapped[self._ring.newest]

    async def run(self, advance: Callable[[int], object]) -> RotationOutcome:
        """Wrap every key anew that the ring opens; `advance` hears of each batch."""
        rewrapped = 0
        unopened: Counter[str] = Counter()
        for _ in range(ROUNDS_MAX):
            unopened.clear()
            done = await self._round(unopened, advance)
            rewrapped += done
            if not done:
                break
        return RotationOutcome(rewrapped, await self._counts(), unopened)

    async def _round(self, unopened: Counter[str], advance: Callable[[int], object]) -> int:
        done, last = 0, self._kept.first
        while True:
            async with self._database.transaction() as connection:
                rows = await connection.fetch(
                    self._on(self._kept.take), self._ring.newest, last, BATCH
                )
                if not rows:
                    return done
                done += await self._rewrap(connection, rows, unopened)
            last = rows[-1]["name"]
            advance(len(rows))

    async def _rewrap(self, connection: Connection, rows: list[Row], unopened: Counter[str]) -> int:
        anew: dict[str, bytes] = {}
        for row in rows:
            bound_to = self._kept.bound_to(row["name"])
            try:
                key = self._ring.unwrap(row["wrapped"], row["master_key_id"], bound_to)
            except KeyUnknown:
                unopened[row["master_key_id"]] += 1
            else:
                anew[row["name"]] = self._ring.wrap(key, bound_to)
        statement = self._on(self._kept.write)
        await connection.execute(statement, list(anew), list(anew.values()), self._ring.newest)
        return len(anew)

    async def _counts(self) -> Counter[str]:
        rows = await self._database.fetch(self._kept.wrapped)
        return Counter({row["master_key_id"]: row["keys"] for row in rows})

    def _on(self, sql: Sql) -> str:
        return sql.on(self._database.schema)
