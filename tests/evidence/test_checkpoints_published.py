"""Checkpoints are published to an archive in order, or not signed."""

import pytest

from service.archive.port import ArchiveUnavailable
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints import stored
from service.evidence.checkpoints.divergence import find_divergence
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.checkpoints.names import link_name, note_name
from service.evidence.checkpoints.published import ArchiveEmpty
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.checkpoints.stored import KeyMissing
from service.evidence.note import NoteKey
from service.ledger.sql import Sql
from tests.evidence.checkpointing import (
    KEY,
    LEAVES,
    checkpointed,
    directory_at,
    forked,
    lose,
    stored_in,
)

STRANGE = NoteKey.of_seed(KEY.name, b"\x07" * 32)
FORGED = Sql("forged", "", "insert into ledger.checkpoints (origin, size, note) values ($1, 2, $2)")


async def test_note_and_leaves_are_published(checkpoints, place, add, owner):
    """The note, the leaf hashes since the previous checkpoint, and the link from that one."""
    first = await checkpoints.make()
    second = await checkpointed(checkpoints, add, 5)
    top = f"checkpoints/{first.checkpoint.origin}"
    assert await place.names("") == [
        f"{top}/00000000000000000000.next",
        f"{top}/00000000000000000001.leaves",
        f"{top}/00000000000000000001.next",
        f"{top}/00000000000000000001.txt",
        f"{top}/00000000000000000006.leaves",
        f"{top}/00000000000000000006.txt",
        f"{top}/begun",
    ]
    assert await place.get(f"{top}/00000000000000000006.txt") == second.note.encode()
    leaves = [row[0] for row in owner.execute(LEAVES)]
    assert await place.get(f"{top}/00000000000000000001.leaves") == leaves[0]
    assert await place.get(f"{top}/00000000000000000006.leaves") == b"".join(leaves[1:])


async def test_without_an_archive_checkpoints_are_only_stored(accounts):
    """Checkpoints are stored only."""
    alone = Checkpoints(accounts, [KEY], None)
    made = await alone.make()
    assert (made.is_new, made.is_published) == (True, False)
    assert await alone.latest() == (made.checkpoint, made.note)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty, cut short or altered"),
        (b"\xff", "is empty, cut short or altered"),
        (b"x\n\n\xe2\x80\x94 x\n", "is empty, cut short or altered"),
        (STRANGE.sign("x\n").encode(), ".* if the key was replaced"),
    ],
)
async def test_a_published_file_that_is_no_checkpoint_blocks_signing(
    checkpoints, place, add, content, why
):
    """Nothing is signed until somebody has looked at it. Keys matter to what is a note alone."""
    made = await checkpoints.make()
    await place.put(f"checkpoints/{made.checkpoint.origin}/{2:020}.txt", content)
    await add(1)
    with pytest.raises(ArchiveUnavailable, match=rf"00002\.txt: {why}"):
        await checkpoints.make()
    assert [one.size for one, _ in await stored_in(checkpoints)] == [1]


async def test_a_note_under_the_name_of_another_checkpoint_is_refused(checkpoints, place):
    """Whoever can write to the archive signs none, but can exchange those of two origins."""
    made = await checkpoints.make()
    origin, size, _ = made.checkpoint
    for other in ((f"{origin}0", size), (origin, size + 1)):
        await place.put(note_name(*other), made.note.encode())
        with pytest.raises(ArchiveUnavailable, match="holds another checkpoint"):
            await checkpoints.published.get(*other)


async def test_an_unreachable_archive_blocks_signing(checkpoints, place, add):
    """Nobody could tell whether a new checkpoint contradicts what is published."""
    await checkpoints.make()
    await add(1)
    place.fails = {"names"}
    with pytest.raises(ArchiveUnavailable):
        await checkpoints.make()
    assert [one.size for one, _ in await stored_in(checkpoints)] == [1]
    state = await checkpoints.state()
    assert (state.forked, state.archive_failures, state.size) == (False, 1, 1)


@pytest.mark.parametrize("lost", ["put leaves", "put txt"])
async def test_a_stored_checkpoint_is_published_later(checkpoints, place, add, lost):
    """After a crash between the two, the next call publishes it although nothing is new."""
    await checkpoints.make()
    await add(2)
    place.fails = {lost}
    with pytest.raises(ArchiveUnavailable):
        await checkpoints.make()
    place.fails = set()
    assert len(await stored_in(checkpoints)) == 2
    again = await checkpoints.make()
    assert (again.checkpoint.size, again.is_new) == (3, False)
    names = [name for name in await place.names("") if "00003." in name]
    assert len(names) == 2
    leaves = await place.get(names[0])
    assert leaves is not None
    assert len(leaves) == 2 * 32


@pytest.mark.parametrize("lost", ["put leaves", "put next", "put txt"])
async def test_the_first_stored_checkpoint_is_published_later(checkpoints, place, add, lost):
    """The archive shows that it is on its way; the next call publishes it, and nothing else."""
    await add(1)
    place.fails = {lost}
    for _ in range(2):
        with pytest.raises(ArchiveUnavailable, match="it is away"):
            await checkpoints.make()
    assert [one.size for one, _ in await stored_in(checkpoints)] == [2]
    place.fails = set()
    again = await checkpoints.make()
    assert (again.checkpoint.size, again.is_new, again.is_published) == (2, False, True)
    assert await checkpoints.published.sizes(again.checkpoint.origin) == [2]


async def test_nothing_is_stored_first_of_which_the_archive_shows_nothing(checkpoints, place, add):
    """What is stored without it could not be told from what a lost archive had."""
    await add(1)
    place.fails = {"put"}
    with pytest.raises(ArchiveUnavailable, match="it is away"):
        await checkpoints.make()
    assert await stored_in(checkpoints) == []
    place.fails = set()
    assert (await checkpoints.make()).is_published


@pytest.mark.parametrize("left", ["nothing", "begun"])
async def test_an_archive_that_was_emptied_is_not_begun_again(checkpoints, add, tmp_path, left):
    """Also where the folders are there still, or what was put there first."""
    for _ in range(1 if left == "nothing" else 2):
        await checkpoints.make()
        await add(1)
    for file in (tmp_path / "published").rglob("*"):
        if file.is_file() and file.name != left:
            file.unlink()
    with pytest.raises(ArchiveEmpty, match="holds no checkpoint of accounts"):
        await checkpoints.make()


async def test_an_archive_that_another_process_fills_meanwhile_is_not_empty(
    checkpoints, accounts, add, place, tmp_path, monkeypatch
):
    """It publishes the first checkpoint and stores a second, while one looks for the first."""
    origin = (await checkpoints.make()).checkpoint.origin
    for file in (tmp_path / "published" / "checkpoints" / origin).iterdir():
        if file.name != "begun":
            file.unlink()
    await add(1)
    looking, get = Checkpoints(accounts, [KEY], place), place.get

    async def get_late(name, bytes_max):
        if name.endswith("begun"):
            monkeypatch.undo()
            await checkpoints.make()
        return await get(name, bytes_max)

    monkeypatch.setattr(place, "get", get_late)
    await looking.check_archive()
    assert [one.size for one, _ in await stored_in(checkpoints)] == [1, 2]


async def test_an_archive_can_be_added_later(accounts, place, add):
    """It has to be initialised; then every stored checkpoint is published."""
    alone = Checkpoints(accounts, [KEY], None)
    for _ in range(3):
        await add(2)
        await alone.make()
    later = Checkpoints(accounts, [KEY], place)
    with pytest.raises(ArchiveEmpty):
        await later.make()
    await later.make(begin_archive=True)
    await add(1)
    assert (await later.make()).checkpoint.size == 8
    names = [name.rpartition("/")[2] for name in await place.names("")]
    assert [name.lstrip("0") for name in names] == [
        *(".next", "3.leaves", "3.next", "3.txt", "5.leaves", "5.next", "5.txt"),
        *("7.leaves", "7.next", "7.txt", "8.leaves", "8.txt"),
    ]
    sizes = [len(await place.get(name) or b"") for name in await place.names("") if "lea" in name]
    assert sizes == [3 * 32, 2 * 32, 2 * 32, 32]


async def test_an_archive_can_be_away_for_several_checkpoints(accounts, place, add):
    """Signed without its setting, they are published where the ones before were."""
    made = await Checkpoints(accounts, [KEY], place).make()
    for _ in range(2):
        await add(1)
        await Checkpoints(accounts, [KEY], None).make()
    later = Checkpoints(accounts, [KEY], place)
    assert (await later.make()).is_published
    assert await later.published.sizes(made.checkpoint.origin) == [1, 2, 3]


async def test_an_empty_archive_gets_nothing(checkpoints, accounts, add, tmp_path):
    """An archive without our files is counted as a failure, not as a fork."""
    await checkpoints.make()
    await add(1)
    (tmp_path / "other").mkdir()
    elsewhere = Checkpoints(accounts, [KEY], directory_at(tmp_path / "other"))
    with pytest.raises(ArchiveEmpty, match="holds no checkpoint of accounts"):
        await elsewhere.make()
    state = await checkpoints.state()
    assert (state.forked, state.archive_failures, state.size) == (False, 1, 1)
    assert list((tmp_path / "other").iterdir()) == []
    assert (await checkpoints.make()).checkpoint.size == 2


async def test_an_archive_is_ours_before_its_newest_checkpoint_is_there(
    checkpoints, accounts, add, place
):
    """Also to a process without keys, which knows no other origins than the stored one."""
    await checkpoints.make()
    await add(1)
    await Checkpoints(accounts, [KEY], None).make()
    await Checkpoints(accounts, [], place).check_archive()


async def test_the_archive_is_listed_once_a_process(checkpoints, place, add):
    """Then one object leads from a checkpoint to the next, however many there are."""
    for _ in range(3):
        await checkpoints.make()
        await add(1)
    assert len(place.listed) == 1
    await checkpoints.make()
    assert len(place.listed) == 1
    top = f"checkpoints/{(await stored_in(checkpoints))[0][0].origin}"
    links = {name: await place.get(name) for name in await place.names("") if "next" in name}
    assert links == {
        f"{top}/{one.size - 1:020}.next": note.encode()
        for one, note in await stored_in(checkpoints)
    }


async def test_what_was_published_long_ago_is_not_listed(checkpoints, place, add):
    """Not even where the last stored checkpoint has not been published yet."""
    for _ in range(3):
        await checkpoints.make()
        await add(1)
    place.fails = {"put txt", "put next"}
    with pytest.raises(ArchiveUnavailable):
        await checkpoints.make()
    assert [one.size for one, _ in await stored_in(checkpoints)] == [1, 2, 3, 4]
    place.listed.clear()
    assert (await checkpoints.newest_published()).size == 3
    assert [after.rpartition("/")[2] for after in place.listed] == [f"{3:020}.txt"]


async def test_a_running_process_notices_what_another_published_before_a_failover(
    accounts, place, add, owner, attack
):
    """Without a list: it has seen neither that checkpoint nor its events."""
    one, other = (Checkpoints(accounts, [KEY], place) for _ in range(2))
    await one.make()
    await other.make()
    await add(2)
    await one.make()
    await lose(owner, attack, 1)
    place.listed.clear()
    await forked(other, "a checkpoint of 3 events was published, the log has 1")
    assert place.listed == []


async def test_a_link_that_leads_nowhere_is_passed_over_by_a_list(
    accounts, place, add, owner, attack
):
    """An earlier version wrote it, a size alone, just before a crash and a failover."""
    one, other = (Checkpoints(accounts, [KEY], place) for _ in range(2))
    made = await one.make()
    await other.make()
    await place.put(link_name(made.checkpoint.origin, 1), b"%020d\n" % 3)
    await add(4)
    assert (await other.make()).checkpoint.size == 5
    await lose(owner, attack, 1)
    await forked(one, "a checkpoint of 5 events was published, the log has 1")


async def test_a_link_that_leads_elsewhere_blocks_signing(checkpoints, place, add, tmp_path):
    """Back, or to another origin: whoever follows it would never end, or end in another log."""
    made, note, *_ = await checkpoints.make()
    home, _, _ = made.origin.rpartition("/")
    other = Checkpoint(f"{home}/lin_x", 3, made.root).sign(KEY)
    await add(1)
    for wrong in (note, other):
        await place.put(link_name(made.origin, 1), wrong.encode())
        with pytest.raises(ArchiveUnavailable, match="leads to another checkpoint"):
            await checkpoints.make()
        (tmp_path / "published" / link_name(made.origin, 1)).unlink()
    assert (await checkpoints.make()).checkpoint.size == 2


async def test_checkpoints_without_links_are_found_by_a_list(
    accounts, place, add, owner, attack, tmp_path
):
    """An earlier version published them; a process that has seen one does not forget it."""
    for _ in range(3):
        await Checkpoints(accounts, [KEY], place).make()
        await add(1)
    for link in (tmp_path / "published").rglob("*.next"):
        link.unlink()
    running = Checkpoints(accounts, [KEY], place)
    assert (await running.make()).checkpoint.size == 4
    await lose(owner, attack, 1)
    await forked(running, "a checkpoint of 2 events was published, the log has 1")
    await forked(Checkpoints(accounts, [KEY], place), "a checkpoint of 2 events was published")


async def test_what_is_stored_is_read_a_page_at_a_time(accounts, add, place, monkeypatch):
    """A login stores any number of checkpoints; those of two pages and more are published."""
    monkeypatch.setattr(stored, "NOTES_MAX", 2)
    alone, later, pages = (
        Checkpoints(accounts, [KEY], None),
        Checkpoints(accounts, [KEY], place),
        [],
    )
    for _ in range(5):
        await add(1)
        made = await alone.make()
    fetch = accounts.database.background.fetch

    async def fetched(query, *given):
        rows = await fetch(query, *given)
        pages.append(len(rows))
        return rows

    monkeypatch.setattr(accounts.database.background, "fetch", fetched)
    assert (await find_divergence(alone)).checkpoint == made.checkpoint
    await later.make(begin_archive=True)
    assert max(pages) == 2
    sizes = [one.size for one, _ in await stored_in(alone)]
    assert await later.published.sizes(made.checkpoint.origin) == sizes == [2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("forge", "expected"),
    [
        (lambda one: f"{one.root}", LedgerForked),
        (lambda one: one.sign(KEY), LedgerForked),
        (lambda one: one._replace(size=2).sign(STRANGE), KeyMissing),
    ],
    ids=["no note", "of another size", "by another key"],
)
async def test_what_nobody_of_ours_signed_is_not_published(accounts, add, place, forge, expected):
    """Although it is stored among what must be: from the archive nobody could remove it."""
    alone, later = Checkpoints(accounts, [KEY], None), Checkpoints(accounts, [KEY], place)
    await add(3)
    made = (await alone.make()).checkpoint
    async with accounts.transaction() as transaction:
        await transaction.fetch(FORGED, made.origin, forge(made))
    with pytest.raises(expected, match="the stored checkpoint of 2 events"):
        await later.make(begin_archive=True)
    with pytest.raises(expected, match="the stored checkpoint of 2 events"):
        await find_divergence(alone)
    assert await later.published.sizes(made.origin) == []
