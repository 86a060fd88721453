"""Rewrapping keys under the newest master key, while the service runs. The log is not touched.

A batch is read, rewrapped and written in one short transaction that locks its rows; the next run
resumes after an interruption. Others only ever insert and delete keys.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple
from uuid import UUID

from service.ledger.database import Connection, Database, Row
from service.ledger.encryption import KeyUnknown, MasterKeys
from service.ledger.service_keys import NAMES, service_key_names
from service.ledger.sql import queries
from service.people import sessions, sign_in

BATCH: Final = 500
_SQL: Final = queries("service.privacy")
ROUNDS_MAX: Final = 3
"""Processes with an older ring may add keys under it meanwhile, so the rounds are limited."""


class WrappedTable(NamedTuple):
    """A table of keys, or addresses, that are wrapped; `first` sorts before every name in it.

    `bound_to` returns the additional data that the wrapping in a row may be bound to, newest form
    first. `names` are all that the service reads, where it knows them.
    """

    name: str
    bound_to: Callable[[Row], Sequence[bytes]]
    first: str = ""
    names: Sequence[str] = ()


def _by_id(row: Row) -> Sequence[bytes]:
    return (UUID(row["name"]).bytes,)


def _by_name(row: Row) -> Sequence[bytes]:
    return (row["name"].encode(),)


def _as_secret(row: Row) -> Sequence[bytes]:
    return service_key_names(row["name"])


def _as_session(row: Row) -> Sequence[bytes]:
    return (sessions.bound_to(row),)


def _as_link(row: Row) -> Sequence[bytes]:
    return (sign_in.bound_to(row),)


DATA_KEYS: Final = WrappedTable("data_keys", _by_id, str(UUID(int=0)))
SERVICE_KEYS: Final = WrappedTable("service_keys", _as_secret, names=NAMES)
EVENT_KEYS: Final = WrappedTable("event_keys", _by_name)
SESSIONS: Final = WrappedTable("sessions", _as_session)
SIGN_IN_LINKS: Final = WrappedTable("sign_in_links", _as_link)


def opened_key(
    ring: MasterKeys, row: Row, master: str, table: WrappedTable, named: Row | None = None
) -> bytes | None:
    """Unwrap a row's key, None where it does not open; `named` is the row whose key it may be."""
    for bound_to in table.bound_to(named or row):
        with suppress(KeyUnknown):
            return ring.unwrap(row["wrapped"], master, bound_to)
    return None


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
            key = opened_key(self._ring, row, row["master_key_id"], self._table)
            if key is None:
                unopened[row["master_key_id"]] += 1
            else:
                newest, *_ = self._table.bound_to(row)
                rewrapped_keys[row["name"]] = self._ring.wrap(key, newest)
        await connection.execute(
            self._write, list(rewrapped_keys), list(rewrapped_keys.values()), self._ring.newest
        )
        return len(rewrapped_keys)

    async def _counts(self) -> Counter[str]:
        rows = await self._database.background.fetch(_SQL[f"wrapped_{self._table.name}"])
        return Counter({row["master_key_id"]: row["keys"] for row in rows})
