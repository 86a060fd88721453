"""Checkpoints of a test's ledger, an archive that can fail, and an attacker's changes."""

from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path

import psycopg
import pytest

from service.app.bootstrap import Service
from service.archive.directory import DirectoryArchive
from service.archive.port import OBJECT_BYTES_MAX, ArchiveUnavailable, OpenArchive
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.log_tree import LedgerForked, extended
from service.evidence.checkpoints.signing import Checkpoints, MadeCheckpoint
from service.evidence.note import NoteKey
from service.ledger.merkle import CompactRange
from service.ledger.sql import Sql
from tests.protections import put_back, take_off
from tests.world import STAFF

LEAVES = """
select sha256('\\x00'::bytea || convert_to(concat_ws(chr(10), 'claim-ledger event v1', l.position,
    l.append_id, e.originator_id, e.originator_version, e.topic, encode(sha256(e.state), 'hex'), ''
), 'UTF8')) from accounts.log l join accounts.events e using (append_id) order by l.position
"""
LOSE = """
delete from accounts.events where append_id in
    (select append_id from accounts.log where position > SIZE)
"""
ALTER = """
update accounts.events set state = convert_to(replace(convert_from(state, 'UTF8'), 'system:dev',
    'system:dew'), 'UTF8')
where append_id = (select append_id from accounts.log where position = {0})
"""
"""Still an event, of somebody else."""
REHASH = """
update accounts.log as l set leaf_hash = accounts.leaf_hash(l.position, e.append_id,
    e.originator_id, e.originator_version, e.topic, e.state)
from accounts.events as e where e.append_id = l.append_id and l.position = {0}
"""
"""What whoever alters an event does next."""
_STORED = Sql("stored", "", "select note from ledger.checkpoints order by size, made_at, origin")
KEY = NoteKey.of_seed("example.com/claim-ledger", bytes(32))


def directory_at(path: Path) -> DirectoryArchive:
    """Return a directory's archive; the directory is created, as an operator would."""
    path.mkdir(mode=0o700, exist_ok=True)
    return DirectoryArchive(path)


class Away:
    """An archive that fails when told to; otherwise it behaves as the wrapped one."""

    def __init__(self, inner: OpenArchive) -> None:
        self.inner = inner
        self.fails: set[str] = set()
        self.listed: list[str] = []
        """After which name, or below which prefix."""

    async def put(self, name: str, content: bytes) -> bool:
        """Put, or fail if the name ends so."""
        self._fail("put", name)
        return await self.inner.put(name, content)

    async def replace(self, name: str, content: bytes, known: bytes | None) -> bool:
        """Replace, or fail."""
        self._fail("replace", name)
        return await self.inner.replace(name, content, known)

    async def get(self, name: str, bytes_max: int = OBJECT_BYTES_MAX) -> bytes | None:
        """Get, or fail."""
        self._fail("get", name)
        return await self.inner.get(name, bytes_max)

    async def names(self, prefix: str, after: str = "") -> list[str]:
        """List, or fail."""
        self._fail("names", prefix)
        self.listed.append(after or prefix)
        return await self.inner.names(prefix, after)

    async def folders(self, prefix: str) -> list[str]:
        """List, or fail."""
        self._fail("names", prefix)
        return await self.inner.folders(prefix)

    def close(self) -> None:
        """Close nothing."""

    def _fail(self, call: str, name: str) -> None:
        ends = {call, f"{call} {name.rpartition('.')[2]}", f"{call} {name.rpartition('/')[2]}"}
        if ends & self.fails:
            raise ArchiveUnavailable("it is away")


@pytest.fixture
def place(tmp_path) -> Away:
    """Return a directory that can be made unreachable."""
    (tmp_path / "published").mkdir()
    return Away(directory_at(tmp_path / "published"))


@pytest.fixture
def checkpoints(accounts, place) -> Checkpoints:
    """Return the checkpoints of accounts."""
    return Checkpoints(accounts, [KEY], place)


@pytest.fixture
def add(service) -> Callable[[int], Awaitable[None]]:
    """Return a function that appends events."""
    return adding(service)


def adding(service: Service) -> Callable[[int], Awaitable[None]]:
    """Return a function that appends events to a service's ledger of accounts."""

    async def append(count: int = 1) -> None:
        for _ in range(count):
            await service.partners.add("A partner", "a@example.com", STAFF)

    return append


@pytest.fixture
def attack(owner) -> Callable[..., None]:
    """Return a function that changes protected rows as the database's owner."""

    def run(*statements: str) -> None:
        tables = [f"accounts.{table}" for table in ("events", "log", "checkpoints", "head")]
        take_off(owner, *tables)
        for statement in statements:
            assert owner.execute(statement).rowcount > 0, statement
        put_back(owner, *tables)

    return run


async def checkpointed(
    checkpoints: Checkpoints, add: Callable[[int], Awaitable[None]], *counts: int
) -> MadeCheckpoint:
    """Append events and make a checkpoint, several times; return the last one."""
    for count in counts:
        await add(count)
        made = await checkpoints.make()
    return made


async def lose(owner, attack: Callable[..., None], size: int) -> None:
    """Cut the log back to a size, as a restore does."""
    rows = owner.execute("select leaf_hash from accounts.log order by position limit %s", [size])
    tree = await extended(CompactRange(), b"".join(row[0] for row in rows))
    statements = (
        "delete from accounts.checkpoints where size > SIZE",
        LOSE,
        "delete from accounts.log where position > SIZE",
        "update accounts.head set size = SIZE, tree = '\\xTREE'",
    )
    tree_text = tree.to_bytes().hex()
    attack(*(one.replace("SIZE", str(size)).replace("TREE", tree_text) for one in statements))


async def stored_in(checkpoints: Checkpoints) -> list[tuple[Checkpoint, str]]:
    """Return all stored checkpoints with their notes, by size."""
    rows = await checkpoints.ledger.database.background.fetch(_STORED)
    return [(Checkpoint.of_note(row["note"]), row["note"]) for row in rows]


def root_of(owner: psycopg.Connection) -> bytes:
    """Return the root over the events, computed here from the documented record."""
    hashes = [row[0] for row in owner.execute(LEAVES)]
    while len(hashes) > 1:
        pairs = [
            sha256(b"\x01" + hashes[at] + hashes[at + 1]).digest()
            for at in range(0, len(hashes) - 1, 2)
        ]
        hashes = pairs + (hashes[-1:] if len(hashes) % 2 else [])
    return hashes[0]


async def forked(checkpoints: Checkpoints, match: str) -> None:
    """Fail unless a checkpoint is refused and the metrics show the fork."""
    stored = await stored_in(checkpoints)
    with pytest.raises(LedgerForked, match=match):
        await checkpoints.make()
    assert (await checkpoints.state()).forked
    assert await stored_in(checkpoints) == stored
