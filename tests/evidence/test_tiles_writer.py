"""A ledger's tiles are written behind its checkpoints, and a stranger's reading of them holds."""

import struct
from hashlib import sha256

import pytest
import structlog

from service.archive.port import ArchiveUnavailable
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.divergence import begin_lineage
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.note import NoteKey
from service.evidence.tiles.edge import TileEdge
from service.evidence.tiles.entries import EntriesUnsound
from service.evidence.tiles.slice import slice_of
from service.evidence.tiles.writer import AGAIN_SECONDS, LOOK_SECONDS, TilesWriter, tiles_state
from service.ledger.events import Cause
from service.ledger.merkle import CompactRange
from tests import runbook
from tests.evidence.checkpointing import ALTER, KEY, LEAVES, Away, checkpointed, directory_at, lose
from tests.evidence.standard_files import tree_hash


def read_tiles(folder, size: int) -> list[bytes]:
    """Return the leaf hashes of a log's first events, read as the specification has it.

    Each entry is hashed, and each tile compared with what is below it.
    """
    leaves, level = [], 0
    below: list[bytes] = []
    while size:
        hashes: list[bytes] = []
        for index in range((size + 255) // 256):
            width = min(256, size - index * 256)
            path = f"{index:03}" if index < 1000 else f"x{index // 1000:03}/{index % 1000:03}"
            path += "" if width == 256 else f".p/{width}"
            raw = (folder / "tile" / str(level) / path).read_bytes()
            assert len(raw) == 32 * width
            tile = [raw[at : at + 32] for at in range(0, len(raw), 32)]
            hashes += tile
            if level == 0:
                bundle = (folder / "tile" / "entries" / path).read_bytes()
                for leaf in tile:
                    (length,) = struct.unpack(">H", bundle[:2])
                    entry, bundle = bundle[2 : 2 + length], bundle[2 + length :]
                    assert sha256(b"\x00" + entry).digest() == leaf
                assert bundle == b""
        if level == 0:
            leaves = hashes
        else:
            full = [below[at : at + 256] for at in range(0, len(below) - 255, 256)]
            assert hashes == [tree_hash(one) for one in full]
        below, level, size = hashes, level + 1, size // 256
    return leaves


async def records_of(start: int, end: int):
    """Yield made-up records."""
    for number in range(start, end):
        yield b"record %d\n" % number


def written(directory, made: dict[str, bytes]) -> None:
    """Write files; a name is written once."""
    for name, content in made.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(content)


async def test_slices_of_any_length_make_the_same_log(tmp_path):
    """Partial tiles are there for each checkpoint until a later slice has the full one."""
    tree, roots = CompactRange(), {}
    for number in range(1_500):
        tree.append(sha256(b"\x00record %d\n" % number).digest())
        roots[number + 1] = tree.root()
    edge = TileEdge()
    for size, between in ((200, [10, 40]), (256, []), (300, [257]), (1_500, [400, 1_499])):
        start = edge.size - edge.size % 256
        target = Checkpoint("one", size, roots[size])
        written(tmp_path, await slice_of(records_of(start, size), edge, target, between))
        assert len(read_tiles(tmp_path / "one", size)) == size
        unfinished = {tile.place: tile.hashes for tile in edge.unfinished()}
        edge = TileEdge(size, unfinished)
    for size in (10, 40, 257, 1_499):
        assert len(read_tiles(tmp_path / "one", size)) == size
    widths = {one.name for one in (tmp_path / "one/tile/0/001.p").iterdir()}
    assert widths == {"1", "44"}, "400 is beyond them, in a tile that is full by then"
    start, target = 1_500 - 1_500 % 256, Checkpoint("one", 1_600, bytes(32))
    with pytest.raises(EntriesUnsound, match="the first 1600 events are not those"):
        await slice_of(records_of(start, 1_600), edge, target, [])


@pytest.fixture
def shelf(tmp_path):
    """Return where the tiles are written, which can fail."""
    return Away(directory_at(tmp_path / "tiles"))


async def test_tiles_follow_the_checkpoints(checkpoints, add, shelf, tmp_path, owner):
    """Each has the partial tiles of its size, and the object `checkpoint` is the newest note."""
    now = [0.0]
    writer = TilesWriter(checkpoints, shelf, lambda: now[0])
    assert await writer.step() == 0, "there is no checkpoint"
    sizes = []
    for more in (3, 2, 1):
        await add(more)
        made = await checkpoints.make()
        now[0] += LOOK_SECONDS
        assert await writer.step() == 1
        assert await writer.step() == 0
        sizes.append(made.checkpoint.size)
        folder = tmp_path / "tiles" / made.checkpoint.origin
        assert (folder / "checkpoint").read_text() == made.note
        expected = [bytes(row[0]) for row in owner.execute(LEAVES)]
        assert read_tiles(folder, made.checkpoint.size) == expected
    assert tree_hash(expected) == made.checkpoint.root
    assert sorted(int(one.name) for one in (folder / "tile/0/000.p").iterdir()) == sorted(sizes)


async def test_a_writer_that_was_cut_off_is_continued(checkpoints, add, shelf, tmp_path):
    """Whatever it had written: `checkpoint` comes last, and what is there already stays."""
    first = await checkpointed(checkpoints, add, 3)
    writer = TilesWriter(checkpoints, shelf)
    for fails in ("put 4", "replace checkpoint", "get checkpoint"):
        shelf.fails = {fails}
        with structlog.testing.capture_logs() as logs:
            assert await TilesWriter(checkpoints, shelf).step() == 0
        assert [line["event"] for line in logs] == ["tiles unavailable"]
        assert not (tmp_path / "tiles" / first.checkpoint.origin / "checkpoint").exists()
    shelf.fails = set()
    assert await writer.write() is True
    assert await writer.write() is False
    assert len(read_tiles(tmp_path / "tiles" / first.checkpoint.origin, 4)) == 4
    assert await tiles_state(checkpoints.ledger.database) == (4, False)


async def test_several_checkpoints_are_passed_at_once(checkpoints, add, shelf, tmp_path):
    """A writer that comes late leaves out none of their partial tiles."""
    for _ in range(3):
        made = await checkpointed(checkpoints, add, 1)
    assert await TilesWriter(checkpoints, shelf).write() is True
    folder = tmp_path / "tiles" / made.checkpoint.origin
    assert {one.name for one in (folder / "tile/0/000.p").iterdir()} == {"2", "3", "4"}
    assert (folder / "checkpoint").read_text() == made.note


async def test_nothing_is_written_of_what_is_not_published(
    checkpoints, add, place, shelf, tmp_path
):
    """A checkpoint that is only stored may be another database's, after a failover."""
    first = await checkpointed(checkpoints, add, 1)
    await add(1)
    place.fails = {"put next"}
    with pytest.raises(ArchiveUnavailable):
        await checkpoints.make()
    place.fails = set()
    writer = TilesWriter(checkpoints, shelf)
    assert [await writer.write(), await writer.write()] == [True, False]
    folder = tmp_path / "tiles" / first.checkpoint.origin
    assert (folder / "checkpoint").read_text() == first.note
    await checkpoints.make()
    assert [await writer.write(), await writer.write()] == [True, False]
    assert (folder / "checkpoint").read_text() == (await checkpoints.latest())[1]


def spoil_tile(folder, _first):
    """Write other hashes over those that the next ones follow."""
    (folder / "tile/0/000.p/4").write_bytes(bytes(128))


def spoil_entries(folder, _first):
    """Be there first with the next entries."""
    (folder / "tile/entries/000.p/6").write_bytes(b"not ours")


def forge_checkpoint(folder, first):
    """Pretend that less was written."""
    (folder / "checkpoint").write_text(first.note.replace("\n4\n", "\n3\n"))


async def test_what_does_not_hold_is_not_continued(checkpoints, add, attack, tmp_path):
    """Neither a log that was altered, nor tiles that somebody else has written over."""
    first = await checkpointed(checkpoints, add, 3)
    spoilers = [
        spoil_tile,
        spoil_entries,
        forge_checkpoint,
        lambda folder, _: (folder / "tile/0/000.p/4").unlink(),
        lambda _folder, _: attack(ALTER.format(5)),
    ]
    writers = [
        TilesWriter(checkpoints, directory_at(tmp_path / str(number)))
        for number in range(len(spoilers))
    ]
    assert all([await writer.write() for writer in writers])
    await checkpointed(checkpoints, add, 2)
    for number, (writer, spoil) in enumerate(zip(writers, spoilers, strict=True)):
        folder = tmp_path / str(number) / first.checkpoint.origin
        spoil(folder, first)
        before = (folder / "checkpoint").read_text()
        with structlog.testing.capture_logs() as logs:
            assert await writer.step() == 0, number
        assert [line["event"] for line in logs] == ["tiles unsound"]
        assert (folder / "checkpoint").read_text() == before
        assert await tiles_state(checkpoints.ledger.database) == (4, True)


async def test_each_object_that_is_wrong_is_named(checkpoints, add, shelf, tmp_path):
    """In one run, by its name at the place; what is missing is told from what is too short."""
    await add(3)
    origin = (await checkpoints.make()).checkpoint.origin
    assert await TilesWriter(checkpoints, shelf).write()
    folder = tmp_path / "tiles" / origin
    tile = folder / "tile/0/000.p/4"
    tile.unlink()
    await checkpointed(checkpoints, add, 2)
    with pytest.raises(EntriesUnsound, match=f"^{origin}/tile/0/000.p/4 is missing$"):
        await TilesWriter(checkpoints, shelf).write()
    tile.write_bytes(bytes(100))
    with pytest.raises(EntriesUnsound, match=f"^{origin}/tile/0/000.p/4 has 100 bytes$"):
        await TilesWriter(checkpoints, shelf).write()
    (folder / "checkpoint").unlink()
    (folder / "tile/entries/000.p/6").write_bytes(b"not ours")
    with pytest.raises(EntriesUnsound) as found:
        await TilesWriter(checkpoints, shelf).write()
    named = {fault.partition(":")[0] for fault in str(found.value).split("; ")}
    assert named == {f"{origin}/tile/0/000.p/4", f"{origin}/tile/entries/000.p/6"}


@pytest.mark.parametrize("name", ["tile/0/000.p/4", "tile/entries/000.p/6"])
async def test_the_runbook_leads_to_the_end(checkpoints, add, shelf, tmp_path, name):
    """Of a tile that was cut, and of one that somebody else wrote first: by both removals."""
    page = " ".join(runbook.PATH.read_text().split())
    assert "Then remove each named object and the `checkpoint` of that log, and run the" in page
    await add(3)
    origin = (await checkpoints.make()).checkpoint.origin
    assert await TilesWriter(checkpoints, shelf).write()
    await checkpointed(checkpoints, add, 2)
    folder = tmp_path / "tiles" / origin
    (folder / name).write_bytes(bytes(32))
    with pytest.raises(EntriesUnsound, match=f"^{origin}/{name}[ :]"):
        await TilesWriter(checkpoints, shelf).write()
    (folder / name).unlink()
    (folder / "checkpoint").unlink()
    writer = TilesWriter(checkpoints, shelf)
    assert [await writer.write(), await writer.write()] == [True, False]
    assert len(read_tiles(folder, 4)) == 4
    assert len(read_tiles(folder, 6)) == 6
    assert await tiles_state(checkpoints.ledger.database) == (6, False)


async def test_no_row_spoils_what_is_published(
    accounts, place, add, attack, owner, shelf, tmp_path
):
    """Neither a line that pretends to be of a key of ours, nor a note that was written over."""
    retired = NoteKey.of_seed("example.com/older", bytes(32))
    checkpoints = Checkpoints(accounts, [KEY, retired], place)
    made = await checkpointed(checkpoints, add, 1)
    origin, size, _ = made.checkpoint
    owner.execute(
        "insert into accounts.checkpoint_signatures values (%s, %s, %s, %s, 'no', now())",
        [origin, size, retired.name, retired.key_id],
    )
    writer, file = TilesWriter(checkpoints, shelf), tmp_path / "tiles" / origin / "checkpoint"
    assert await writer.write() is True
    assert file.read_text() == made.note
    attack("update accounts.checkpoints set note = replace(note, '/accounts/', '/accountz/')")
    with pytest.raises(EntriesUnsound, match=f"the stored note of {size} events does not hold"):
        await TilesWriter(checkpoints, shelf).write()
    assert file.read_text() == made.note


async def test_a_new_lineage_has_tiles_of_its_own(checkpoints, add, attack, owner, shelf, tmp_path):
    """From its first event on; those of the log that was signed before stay, and do not go back."""
    first = await checkpointed(checkpoints, add, 3)
    writer = TilesWriter(checkpoints, shelf)
    await writer.write()
    await lose(owner, attack, 3)
    assert await writer.write() is False
    old = tmp_path / "tiles" / first.checkpoint.origin
    assert (old / "checkpoint").read_text() == first.note
    await begin_lineage(checkpoints, "events were lost", Cause("staff:test", "req_1"), force=False)
    made = await checkpoints.make()
    assert await writer.write() is True
    new = tmp_path / "tiles" / made.checkpoint.origin
    assert tree_hash(read_tiles(new, made.checkpoint.size)) == made.checkpoint.root
    assert made.checkpoint.origin != first.checkpoint.origin
    assert tree_hash(read_tiles(old, first.checkpoint.size)) == first.checkpoint.root


async def test_a_writer_that_is_overtaken_takes_nothing_back(checkpoints, add, shelf, tmp_path):
    """While it writes for one checkpoint, another one writes for a later one, too."""
    await checkpointed(checkpoints, add, 1)
    inner, others = shelf.inner, TilesWriter(checkpoints, shelf.inner)

    class Overtaking(Away):
        async def put(self, name, content):
            if not self.fails:
                self.fails = {"nothing"}
                await checkpointed(checkpoints, add, 1)
                while await others.write():
                    pass
            return await super().put(name, content)

    assert await TilesWriter(checkpoints, Overtaking(inner)).write() is True
    origin, note = (await checkpoints.latest())[0].origin, (await checkpoints.latest())[1]
    assert (tmp_path / "tiles" / origin / "checkpoint").read_text() == note


async def test_a_writer_that_stood_still_takes_nothing_back(checkpoints, add, shelf, tmp_path):
    """It goes on in its very last step, after others have written for a later checkpoint."""
    await checkpointed(checkpoints, add, 1)
    inner, others = shelf.inner, TilesWriter(checkpoints, shelf.inner)

    class StandingStill(Away):
        async def replace(self, name, content, known):
            await checkpointed(checkpoints, add, 1)
            while await others.write():
                pass
            return await super().replace(name, content, known)

    assert await TilesWriter(checkpoints, StandingStill(inner)).write() is True
    newest, note = await checkpoints.latest()
    assert (tmp_path / "tiles" / newest.origin / "checkpoint").read_text() == note
    assert await tiles_state(checkpoints.ledger.database) == (newest.size, False)


async def test_an_older_checkpoint_does_not_stay(checkpoints, add, shelf, tmp_path):
    """Somebody restored it, or removed what was there."""
    now = [0.0]
    writer = TilesWriter(checkpoints, shelf, lambda: now[0])
    notes = []
    for _ in range(2):
        await add(1)
        notes.append((await checkpoints.make()).note)
        now[0] += LOOK_SECONDS
        assert [await writer.step(), await writer.step()] == [1, 0]
    file = tmp_path / "tiles" / (await checkpoints.latest())[0].origin / "checkpoint"
    for spoil in (lambda: file.write_text(notes[0]), file.unlink):
        spoil()
        now[0] += AGAIN_SECONDS
        assert [await writer.step(), await writer.step()] == [1, 0]
        assert file.read_text() == notes[1]
