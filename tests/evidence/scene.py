"""Helpers of tests that change a log and verify it."""

# ruff: noqa: S608 - tables and columns come from lists in the tests
from collections.abc import AsyncGenerator
from random import Random
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import asyncpg
import pytest

from service.evidence.verdict import Verdict
from service.evidence.verify.expectations import Evidence
from service.evidence.verify.ledger_verifier import verify
from service.ledger.events import Event
from service.ledger.ledger import Ledger
from service.ledger.writing import Append
from tests.evidence.sealed_log import SCHEMA, SIZE, Numbered, SealedLog
from tests.ledger.samples import CAUSE
from tests.numbering import number

AWAY = 1_000_000
"""A position and append_id that no event has."""
_LETTERS = "aZ0 \n\té\u2028\u202e\x7f"


class Unchanged(Exception):
    """This draw changes nothing, so it does not count."""


class Named(NamedTuple):
    """The lowest and highest position that the verdict may name; None: no position."""

    low: int | None
    high: int | None


class Scene(NamedTuple):
    """What a change works with. `bare`: constraints are removed, so any value can be written."""

    connection: asyncpg.Connection
    random: Random
    log: SealedLog
    bare: bool

    async def run(self, sql: str, *values: object) -> None:
        """Run a statement that must change something."""
        tag = await self.connection.execute(sql, *values)
        if tag.split()[-1] == "0":
            raise Unchanged

    def row(self, last: int = SIZE) -> Numbered:
        """Draw a numbered event up to a position."""
        return self.log.rows[self.random.randrange(last)]

    def two(self, last: int = SIZE) -> tuple[Numbered, Numbered]:
        """Draw two, in order."""
        one, other = sorted(self.random.sample(range(last), 2))
        return self.log.rows[one], self.log.rows[other]

    def altered(self, value: Any) -> Any:
        """Return another value of the type; without constraints sometimes a null."""
        if self.bare and self.random.random() < 0.05:
            return None
        if isinstance(value, int):
            return self._number(value)
        if isinstance(value, UUID):
            return UUID(int=value.int ^ 1 << self.random.randrange(128))
        changed = self._text(value) if isinstance(value, str) else self._bytes(value)
        if changed == value:
            raise Unchanged
        return changed

    def _number(self, value: int) -> int:
        if self.random.random() < 0.3:
            return value + self.random.choice([-1, 1])
        flipped = (value ^ 1 << self.random.randrange(64)) & (1 << 64) - 1
        return flipped - (1 << 64) if flipped >> 63 else flipped

    def _bytes(self, value: bytes) -> bytes:
        at = self.random.randrange(len(value))
        bit = bytes([value[at] ^ 1 << self.random.randrange(8)])
        return (
            value[:at] + self.random.choice([bit, bit, bit, b"", b"\0", b"\xff"]) + value[at + 1 :]
        )

    def _text(self, value: str) -> str:
        at = self.random.randrange(len(value))
        bit = chr(ord(value[at]) ^ 1 << self.random.randrange(7)).replace("\0", "?")
        other = self.random.choice([bit, bit, bit, "", value[at] * 2, *_LETTERS])
        return value[:at] + other + value[at + 1 :]


def at(position: int | None) -> Named:
    """Return a Named of exactly that position."""
    return Named(position, position)


async def insert_row(scene: Scene, append_id: int, state: bytes) -> None:
    """Insert an event that begins a stream, without a number."""
    await scene.run(
        "insert into accounts.events"
        " (append_id, originator_id, originator_version, topic, state)"
        " values ($1, $2, 1, 'PartnerApproved', $3)",
        *(append_id, UUID(int=scene.random.getrandbits(128)), state),
    )


async def swap(scene: Scene, table: str, column: str, one: Numbered, other: Numbered) -> None:
    """Swap a column's values; raise Unchanged if they are equal."""
    key = "position" if column == "append_id" and table == "log" else "append_id"
    keys = [getattr(one, key), getattr(other, key)]
    values = await scene.connection.fetch(
        f"select {column} from accounts.{table} where {key} = any($1::bigint[])"
        f" order by array_position($1::bigint[], {key})",
        keys,
    )
    (first,), (second,) = values
    if first == second:
        raise Unchanged
    if column in {"position", "append_id"}:  # unique: by way of a value that nobody has
        changes = [(-AWAY, first), (first, second), (second, -AWAY)]
        if not scene.bare and table == "log" and column == "position":
            changes = [(AWAY, first), (first, second), (second, AWAY)]
        for new, old in changes:
            sql = f"update accounts.{table} set {column} = $1 where {column} = $2"
            await scene.run(sql, new, old)
        return
    for new, key_of in ((second, keys[0]), (first, keys[1])):
        await scene.run(f"update accounts.{table} set {column} = $1 where {key} = $2", new, key_of)


@pytest.fixture
async def owner_connection(database_url: str) -> AsyncGenerator[asyncpg.Connection, None]:
    """Return an owner's connection, used by the attacker and the verifier."""
    one = await asyncpg.connect(database_url)
    yield one
    await one.close()


async def judged(connection: asyncpg.Connection, evidence: Evidence) -> Verdict:
    """Verify the log as it is."""
    async with connection.transaction():
        return await verify(connection, SCHEMA, evidence)


async def append(
    ledger: Ledger, *events: Event, stream: UUID | None = None, version: int = 0
) -> None:
    """Append and number."""
    async with ledger.transaction() as transaction:
        await transaction.append(Append(stream or uuid4(), version, events, CAUSE))
    await number(ledger)
