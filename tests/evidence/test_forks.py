"""No checkpoint is signed that contradicts a signed or published one."""

import asyncio

import pytest

from service.archive.port import ArchiveUnavailable
from service.core.ids import new_id
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.lineage import begin_first
from service.evidence.checkpoints.names import note_name
from service.ledger.sequencer import Sequencer
from tests.evidence.checkpointing import KEY, checkpointed, forked, lose, root_of, stored_in
from tests.patience import PATIENCE_SECONDS

REMAKE = """
update accounts.log as l set leaf_hash = accounts.leaf_hash(l.position, e.append_id,
    e.originator_id, e.originator_version, e.topic, e.state)
from accounts.events as e where e.append_id = l.append_id
"""


async def test_an_altered_event_is_found(checkpoints, add, attack):
    """Its leaf hash no longer matches."""
    await checkpoints.make()
    await add(3)
    await Sequencer(checkpoints.ledger).number_committed()
    attack("update accounts.events set state = state || ' ' where append_id = 3")
    await forked(checkpoints, "position 3 is not the one that was hashed")


async def test_an_altered_event_with_its_hash_is_found(checkpoints, add, attack):
    """The sequencer's tree, made from the first hash, reveals it."""
    await checkpoints.make()
    await add(3)
    await Sequencer(checkpoints.ledger).number_committed()
    attack("update accounts.events set state = state || ' ' where append_id = 3", REMAKE)
    await forked(checkpoints, "the head's tree is not that of the 4 events")


async def test_an_altered_event_with_hash_and_head_is_found(checkpoints, add, attack):
    """Below a checkpoint the signed root reveals it, so no further one can be made."""
    await checkpointed(checkpoints, add, 3)
    await add(1)
    attack(
        "update accounts.events set state = state || ' ' where append_id = 3",
        REMAKE,
        "update accounts.head set tree = null",
        "update accounts.checkpoints set tree = null",
    )
    await forked(checkpoints, "the first 4 events are not those that were signed")


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        ("delete from accounts.log where position = 3", "positions are missing between 2 and 4"),
        ("delete from accounts.events where append_id = 3", "position 3 is not the one"),
        ("update accounts.head set size = 0, tree = ''", "the log ends at 0, a checkpoint has 1"),
        ("update accounts.head set tree = 'x'", "tree is none of 4 events"),
        ("delete from accounts.head", "lost its head"),
        ("update accounts.checkpoints set note = note || 'x'", "in the database was altered"),
        (
            "update accounts.checkpoints set note = replace(note, chr(10) || '1', chr(10) || '2')",
            "in the database was altered",
        ),
    ],
)
async def test_other_attacks_are_refused(checkpoints, add, attack, statement, match):
    """Each is refused, and nothing is signed over it."""
    await checkpoints.make()
    await add(3)
    await Sequencer(checkpoints.ledger).number_committed()
    attack(statement)
    await forked(checkpoints, match)


async def test_a_wrong_stored_tree_is_rebuilt(checkpoints, add, attack, owner):
    """It is used only if it leads to the signed root."""
    await checkpointed(checkpoints, add, 4)
    attack("update accounts.checkpoints set tree = sha256('x') || sha256('y')")
    await add(1)
    assert (await checkpoints.make()).checkpoint.root == root_of(owner)


async def test_a_log_shorter_than_published_is_refused(checkpoints, add, attack):
    """The loss is reported, and nothing is signed."""
    await checkpoints.make()
    await checkpointed(checkpoints, add, 2)
    attack(
        "delete from accounts.checkpoints where size = 3",
        "delete from accounts.log where position > 1",
        "update accounts.head set size = 1, tree = (select leaf_hash from accounts.log)",
    )
    await forked(checkpoints, "a checkpoint of 3 events was published, the log has 1")


async def test_replaced_events_are_found_by_the_root(checkpoints, add, attack, owner):
    """The log has grown again beyond what was published."""
    await checkpoints.make()
    await checkpointed(checkpoints, add, 2)
    await lose(owner, attack, 1)
    await add(4)
    await forked(checkpoints, "the first 3 events are not those published")


async def test_a_lost_lineage_is_reported(checkpoints, add, attack, owner):
    """A log without any lineage has lost the published one."""
    await checkpointed(checkpoints, add, 2)
    await lose(owner, attack, 2)
    await forked(checkpoints, "the log knows nothing of it")
    assert owner.execute("select count(*) from accounts.events").fetchone() == (2,)


async def test_a_lost_checkpoint_is_restored(checkpoints, add, attack, owner):
    """If the log still holds what was published, the note is stored again and work goes on."""
    await checkpoints.make()
    lost = await checkpointed(checkpoints, add, 2)
    await add(2)
    attack("delete from accounts.checkpoints where size = 3")
    made = await checkpoints.make()
    assert made.checkpoint.size == 5
    assert made.checkpoint.root == root_of(owner)
    assert [note for one, note in await stored_in(checkpoints) if one.size == 3] == [lost.note]


async def test_all_lost_checkpoints_are_restored(checkpoints, add, attack):
    """Every published note comes back, not only the largest."""
    for _ in range(4):
        await checkpointed(checkpoints, add, 1)
    before = await stored_in(checkpoints)
    attack("delete from accounts.checkpoints where size > 2")
    await checkpointed(checkpoints, add, 1)
    assert (await stored_in(checkpoints))[:-1] == before


async def test_a_conflicting_published_checkpoint_is_a_fork(place, add, checkpoints):
    """It has the same size and origin: two logs sign as one."""
    made = await checkpoints.make()
    await add(1)
    other = Checkpoint(made.checkpoint.origin, 2, bytes(32))
    await place.put(f"checkpoints/{other.origin}/{2:020}.txt", other.sign(KEY).encode())
    await forked(checkpoints, "the first 2 events are not those published")


async def test_another_checkpoint_published_in_place_of_the_last_one_is_a_fork(
    checkpoints, add, tmp_path
):
    """A database that was failed over from published it: nothing is signed behind it."""
    made = await checkpointed(checkpoints, add, 1)
    other = Checkpoint(made.checkpoint.origin, made.checkpoint.size, bytes(32))
    published = tmp_path / "published" / note_name(other.origin, other.size)
    published.unlink()
    published.write_text(other.sign(KEY))
    await add(1)
    await forked(checkpoints, "another checkpoint of 2 events was published")


async def test_the_fork_metric_is_cleared(checkpoints, place, add, owner):
    """The mark goes once a checkpoint can be made."""
    await checkpoints.make()
    await add(1)
    place.fails = {"get"}
    with pytest.raises(ArchiveUnavailable):
        await checkpoints.make()
    owner.execute("update accounts.checkpoint_state set forked = true")
    assert (await checkpoints.state()).forked
    place.fails = set()
    await checkpoints.make()
    state = await checkpoints.state()
    assert (state.forked, state.archive_failures, state.size) == (False, 1, 2)


@pytest.mark.parametrize("others", [0, 2])
async def test_nothing_is_signed_under_a_lineage_that_nobody_queued(
    checkpoints, accounts, add, owner, others
):
    """Its event was taken out of the queue, and will never be in the log: neither is it awaited."""
    await add(others)
    await begin_first(accounts, KEY, new_id)
    owner.execute("delete from accounts.pending where append_id = %s", [others + 1])
    async with asyncio.timeout(PATIENCE_SECONDS):
        await forked(checkpoints, "begins its lineage is in neither log nor queue")
    assert await stored_in(checkpoints) == []
