"""A log with checkpoints, published and stored, for tests that alter it."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from random import Random
from typing import NamedTuple
from uuid import UUID

import asyncpg
import pytest

from service.evidence.authorisation import authorised
from service.evidence.checkpoint import Checkpoint
from service.evidence.note import NoteKey
from service.evidence.verify.expectations import Evidence, ReadNote
from service.facts.lineages import lineage_stream
from service.facts.partners import PartnerApproved
from service.ledger.ledger import Ledger
from service.ledger.merkle import CompactRange
from service.ledger.sequencer import Sequencer
from service.ledger.writing import Append
from tests.databases import cloned
from tests.ledger.samples import CAUSE
from tests.world import service_on, settings_for

KEY = NoteKey.of_seed("example.com/claim-ledger", b"\1" * 32)
SCHEMA = "accounts"
ORIGIN = f"{KEY.name}/{SCHEMA}/1"
SIZES = (10, 23, 40)
"""Where there are checkpoints."""
SIZE = 48
"""Numbered events; a few more wait."""
WAITING = 3
LATE = (7, 16, 29, 44)
"""Events that are committed after the one appended next has its number."""

COLUMNS = ("append_id", "originator_id", "originator_version", "topic", "state")
TABLES = ("events", "log", "head", "checkpoints", "pending")


class Numbered(NamedTuple):
    """A numbered event as it was appended."""

    position: int
    append_id: int
    originator_id: UUID
    originator_version: int
    topic: str
    state: bytes


class SealedLog(NamedTuple):
    """The log before any change, and what is known of it elsewhere."""

    rows: Sequence[Numbered]
    waiting: Sequence[int]
    published: Evidence
    without_leaves: Evidence
    stored_only: Evidence

    def position_of(self, append_id: int) -> int | None:
        """Return the position of an event."""
        return next((row.position for row in self.rows if row.append_id == append_id), None)

    def place_of_stray(self, append_id: int) -> int:
        """Return the place of an unnumbered event in the order of appending."""
        later = [row.position for row in self.rows if row.append_id > append_id]
        return min(later, default=SIZE + 1)


@pytest.fixture(scope="session")
def sealed(postgres_url, template, tmp_path_factory) -> Iterator[tuple[str, SealedLog]]:
    """Return the name of a database with a sealed log, to be cloned, and that log."""
    with cloned(postgres_url, template) as url:
        log = asyncio.run(make_sealed_log(url, tmp_path_factory.mktemp("sealed")))
        yield url.rpartition("/")[2], log


@pytest.fixture
def log(sealed) -> SealedLog:
    """Return the log with checkpoints in this test's database."""
    return sealed[1]


async def make_sealed_log(database_url: str, mail_dir: Path) -> SealedLog:
    """Append, number and sign; the log is the same each time but for database ids."""
    settings = settings_for(database_url, mail_dir)
    async with service_on(settings) as service:
        await _append(service.accounts)
        connection = await asyncpg.connect(database_url)
        try:
            return await _seal(connection)
        finally:
            await connection.close()


async def disarm(connection: asyncpg.Connection, *, bare: bool) -> None:
    """Remove what protects the tables, as their owner can; `bare`: constraints as well."""
    for table in (*TABLES, "checkpoint_signatures"):
        await connection.execute(f"alter table {SCHEMA}.{table} disable trigger user")
    await connection.execute(f"alter table {SCHEMA}.events alter append_id drop identity")
    if bare:
        for table in TABLES:
            await _strip(connection, table)


async def _strip(connection: asyncpg.Connection, table: str) -> None:
    name = f"{SCHEMA}.{table}"
    for kinds in (["p", "u", "c"], ["n"]):
        constraints = await connection.fetch(
            "select conname from pg_constraint where conrelid = $1::text::regclass"
            ' and contype = any($2::"char"[])',
            name,
            [kind.encode() for kind in kinds],
        )
        for (constraint,) in constraints:
            await connection.execute(f'alter table {name} drop constraint "{constraint}" cascade')
    columns = await connection.fetch(
        "select attname from pg_attribute where attrelid = $1::text::regclass and attnum > 0"
        " and attnotnull and not attisdropped",
        name,
    )
    for (column,) in columns:
        await connection.execute(f"alter table {name} alter {column} drop not null")


async def _append(ledger: Ledger) -> None:
    """Append to sixteen streams in turn, with gaps in the append_ids as rollbacks leave them.

    Some events are committed late: the one appended after each has a position before it.
    """
    random = Random(4)  # noqa: S311 - the same log each time
    streams = [UUID(int=random.getrandbits(128)) for _ in range(16)]
    versions = dict.fromkeys(streams, 0)
    sequencer, late = Sequencer(ledger), AsyncExitStack()
    for number in range(SIZE + WAITING):
        if number in LATE:
            append = Append(UUID(int=number), 0, [PartnerApproved(f"ptn_{number}")], CAUSE)
            await (await late.enter_async_context(ledger.transaction())).append(append)
            continue
        if number == 4:
            begun = authorised(KEY, ORIGIN, "the first checkpoint")
            append = Append(lineage_stream(SCHEMA), 0, [begun], CAUSE)
        else:
            stream = random.choice(streams)
            event = PartnerApproved(f"ptn_{number}")
            append = Append(stream, versions[stream], [event], CAUSE)
            versions[stream] += 1
        if number % 9 == 5:
            await _roll_back(ledger, append)
        async with ledger.transaction() as transaction:
            await transaction.append(append)
        if number - 1 in LATE:
            await sequencer.step()
            await late.aclose()
        if number % 7 == 5:  # batches of the sequencer; what comes after the last one waits
            await sequencer.step()


async def _roll_back(ledger: Ledger, append: Append) -> None:
    with suppress(ZeroDivisionError):
        async with ledger.transaction() as transaction:
            await transaction.append(append)
            raise ZeroDivisionError


async def _seal(connection: asyncpg.Connection) -> SealedLog:
    rows = await connection.fetch(
        "select l.position, l.append_id, e.originator_id, e.originator_version, e.topic, e.state,"
        " l.leaf_hash from accounts.log l join accounts.events e using (append_id)"
        " order by l.position"
    )
    waiting = await connection.fetch("select append_id from accounts.pending order by append_id")
    notes, leaves, trees = _checkpoints([row["leaf_hash"] for row in rows])
    await connection.executemany(
        "insert into accounts.checkpoints (origin, size, note, tree) values ($1, $2, $3, $4)",
        [(*note, tree) for note, tree in zip(notes, trees, strict=True)],
    )

    async def fetch(name: str, _bytes_max: int = 0) -> bytes | None:
        return leaves.get(name)

    return SealedLog(
        [Numbered(*row[:-1]) for row in rows],
        [row["append_id"] for row in waiting],
        Evidence([KEY], notes, read=fetch),
        Evidence([KEY], notes),
        Evidence([KEY]),
    )


def _checkpoints(hashes: list[bytes]) -> tuple[list[ReadNote], dict[str, bytes], list[bytes]]:
    tree, notes, leaves, trees = CompactRange(), [], {}, []
    for before, size in zip((0, *SIZES), SIZES, strict=False):
        tree.extend(hashes[before:size])
        text = Checkpoint(ORIGIN, size, tree.root()).sign(KEY)
        notes.append(ReadNote(ORIGIN, size, text))
        leaves[notes[-1].leaves_name] = b"".join(hashes[before:size])
        trees.append(tree.to_bytes())
    return notes, leaves, trees
