"""Rewrapping keys under the newest master key, while the service runs. The log is not touched.

A batch is read, rewrapped and written in one short transaction that locks its rows; the next run
resumes after an interruption. Others only ever insert and delete keys.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from service.ledger.database import Connection, Database, Row
from service.ledger.encryption import KeyUnknown, MasterKeys
from service.ledger.service_keys import NAMES
from service.ledger.sql import queries
from service.people import sessions, sign_in

BATCH: Final = 500
_SQL: Final = queries("service.privacy")
ROUNDS_MAX: Final = 3
"""Processes with an older ring may add keys under it meanwhile, so the rounds are limited."""


class WrappedTable(NamedTuple):
    """A table of keys, or addresses, that are wrapped; `first` sorts before every name in it.

    `bound_to` returns the additional data that the wrapping in a row is bound to. `names` are all
    that the service reads, where it knows them.
    """

    name: str
    bound_to: Callable[[Row], bytes]
    first: str = ""
    names: Sequence[str] = ()


def _by_id(row: Row) -> bytes:
    return UUID(row["name"]).bytes


def _by_name(row: Row) -> bytes:
    return row["name"].encode()


DATA_KEYS: Final = WrappedTable("data_keys", _by_id, str(UUID(int=0)))
SERVICE_KEYS: Final = WrappedTable("service_keys", _by_name, names=NAMES)
EVENT_KEYS: Final = WrappedTable("event_keys", _by_name)
SESSIONS: Final = WrappedTable("sessions", sessions.bound_to)
SIGN_IN_LINKS: Final = WrappedTable("sign_in_links", sign_in.bound_to)


class RotationOutcome(NamedTuple):
    """The outcome for a table: `wrapped` counts its keys by master key, as they are now.

    `unopened` counts those that the ring does not open, by the master key that wrapped them.
    """

    rewrapped: int
    wrapped: Counter[str]
    unopened: Counter[str]


class Rotation:
    """Rewraps one table's keys."""

    def __init__(self, database: Database, table: WrappedTable, ring: MasterKeys) -> None:
        """`ring` holds the newest master key and those before it."""
        self._database = database
        self._table = table
        self._ring = ring
        self._take = _SQL[f"rotate_{table.name}"].on(database.schema)
        self._write = _SQL[f"rotate_{table.name}_write"].on(database.schema)

    async def older(self) -> int:
        """Return how many keys are not wrapped by the newest master key."""
        wrapped = await self._counts()
        return wrapped.total() - wrapped[self._ring.newest]

    async def run(self, advance: Callable[[int], object]) -> RotationOutcome:
        """Rewrap every key that the ring opens; report the size of each batch to `advance`."""
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
        done, last = 0, self._table.first
        while True:
            async with self._database.background.transaction() as connection:
                rows = await connection.fetch(self._take, self._ring.newest, last, BATCH)
                if not rows:
                    return done
                done += await self._rewrap(connection, rows, unopened)
            last = rows[-1]["name"]
            advance(len(rows))

    async def _rewrap(self, connection: Connection, rows: list[Row], unopened: Counter[str]) -> int:
        rewrapped_keys: dict[str, bytes] = {}
        for row in rows:
            bound_to = self._table.bound_to(row)
            try:
                key = self._ring.unwrap(row["wrapped"], row["master_key_id"], bound_to)
            except KeyUnknown:
                unopened[row["master_key_id"]] += 1
            else:
                rewrapped_keys[row["name"]] = self._ring.wrap(key, bound_to)
        await connection.execute(
            self._write, list(rewrapped_keys), list(rewrapped_keys.values()), self._ring.newest
        )
        return len(rewrapped_keys)

    async def _counts(self) -> Counter[str]:
        rows = await self._database.background.fetch(_SQL[f"wrapped_{self._table.name}"])
        return Counter({row["master_key_id"]: row["keys"] for row in rows})
