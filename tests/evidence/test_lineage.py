"""The way on after lost events: a new lineage, linked to the last checkpoint of the old one."""

from uuid import uuid4

import pytest

from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints import log_tree
from service.evidence.checkpoints.divergence import LineageRefused, begin_lineage, find_divergence
from service.evidence.checkpoints.lineage import lineages
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.checkpoints.published import ArchiveEmpty
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.note import NoteKey
from service.evidence.verify.expectations import published_evidence
from service.evidence.verify.ledger_verifier import verify_ledger
from service.ledger.events import Cause
from service.ledger.sequencer import Sequencer
from tests.evidence.checkpointing import KEY, directory_at, lose

REMAKE = """
update accounts.log as l set leaf_hash = accounts.leaf_hash(l.position, e.append_id,
    e.originator_id, e.originator_version, e.topic, e.state)
from accounts.events as e where e.append_id = l.append_id
"""
CAUSE = Cause("staff:test", "req_test")


async def checkpointed(checkpoints, add, *counts):
    """Append some events and make a checkpoint, several times; answer the last one."""
    for count in counts:
        await add(count)
        made = await checkpoints.make()
    return made


async def parted(checkpoints):
    """Return the size of the past, what is shared, and the log's size."""
    parting = await find_divergence(checkpoints)
    assert parting is not None
    return parting.checkpoint.size, parting.shared_size, parting.size


async def test_nothing_is_lost(checkpoints, add):
    """A sound log shares all of its past, and no lineage is begun."""
    await checkpointed(checkpoints, add, 2, 3)
    await add(1)
    await Sequencer(checkpoints.ledger.database).number_committed()
    assert await parted(checkpoints) == (6, 6, 7)
    with pytest.raises(LineageRefused, match="holds all 6 events"):
        await begin_lineage(checkpoints, "no reason", CAUSE, force=False)
    assert len(await lineages(checkpoints.ledger)) == 1


async def test_there_is_no_past(checkpoints, add):
    """The first lineage is begun by the first checkpoint, forced or not."""
    await add(1)
    assert await find_divergence(checkpoints) is None
    with pytest.raises(LineageRefused, match="no checkpoint yet"):
        await begin_lineage(checkpoints, "no reason", CAUSE, force=True)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 7, 8])
async def test_lost_events(checkpoints, add, attack, owner, size):
    """What is shared is told to the event, between checkpoints too, by the published leaves."""
    await checkpointed(checkpoints, add, 2, 3, 3)
    await lose(owner, attack, size)
    assert await parted(checkpoints) == (9, size, size)


async def test_lost_and_replaced_events(checkpoints, add, attack, owner):
    """What came instead is not shared."""
    await checkpointed(checkpoints, add, 2, 3, 3)
    await lose(owner, attack, 5)
    await add(7)
    await Sequencer(checkpoints.ledger.database).number_committed()
    assert await parted(checkpoints) == (9, 5, 12)


async def test_going_on(checkpoints, add, attack, owner, place):
    """The lineage's event links to the last checkpoint, and work goes on under the new origin."""
    lost = await checkpointed(checkpoints, add, 2, 3, 3)
    await lose(owner, attack, 5)
    await add(1)
    with pytest.raises(LedgerForked):
        await checkpoints.make()
    made = await begin_lineage(checkpoints, "a disk was lost", CAUSE, force=False)

    first, begun = await lineages(checkpoints.ledger)
    assert first.origin == lost.checkpoint.origin
    assert begun.origin == made.checkpoint.origin > first.origin
    assert (begun.reason, begun.shared_size) == ("a disk was lost", 5)
    assert begun.previous == lost.note
    assert (made.checkpoint.size, made.is_new) == (7, True)
    assert not (await checkpoints.state()).forked
    assert await checkpoints.latest() == (made.checkpoint, made.note)
    leaves = await place.get(f"checkpoints/{begun.origin}/{7:020}.leaves")
    assert leaves is not None
    assert len(leaves) == 7 * 32

    await add(1)
    assert (await checkpoints.make()).checkpoint.size == 8
    assert {one.origin for one, _ in await checkpoints.all()} == {first.origin, begun.origin}


async def test_a_restore_can_lose_checkpoints_over_what_it_kept(
    checkpoints, accounts, add, attack, owner, place
):
    """They are stored a moment after their events: the new lineage takes them back, signed."""
    await checkpointed(checkpoints, add, 2, 1, 1, 3)
    before = await checkpoints.all()
    await lose(owner, attack, 6)
    attack("delete from accounts.checkpoints where size > 3")
    await begin_lineage(checkpoints, "a restore", CAUSE, force=False)
    kept = await checkpoints.all()
    assert kept[:-1] == before[:3]
    evidence = await published_evidence(place, "accounts", [KEY], None)
    verdict = await verify_ledger(accounts.database, evidence)
    assert (verdict.ok, verdict.fault, verdict.lineages) == (True, None, 2)


async def test_an_empty_archive_cannot_tell_of_a_loss(checkpoints, accounts, add, tmp_path):
    """Nothing is begun on the word of the database alone, forced or not."""
    await checkpointed(checkpoints, add, 2, 3)
    (tmp_path / "other").mkdir()
    elsewhere = Checkpoints(accounts, [KEY], directory_at(tmp_path / "other"))
    for force in (False, True):
        with pytest.raises(ArchiveEmpty, match="no checkpoint of accounts"):
            await begin_lineage(elsewhere, "no reason", CAUSE, force=force)
    assert len(await lineages(accounts)) == 1


async def test_lost_again(checkpoints, add, attack, owner):
    """A second restore parts from the second lineage, also where its event is lost itself."""
    await checkpointed(checkpoints, add, 4, 4)
    await lose(owner, attack, 5)
    second = await begin_lineage(checkpoints, "once", CAUSE, force=False)
    assert second.checkpoint.size == 6
    await lose(owner, attack, 5)
    with pytest.raises(LedgerForked, match="knows nothing of it"):
        await checkpoints.make()
    assert await parted(checkpoints) == (6, 5, 5)
    third = await begin_lineage(checkpoints, "twice", CAUSE, force=False)
    known = await lineages(checkpoints.ledger)
    assert [one.previous for one in known] == [None, second.note]
    await add(1)
    assert (await checkpoints.make()).checkpoint.origin == third.checkpoint.origin


async def test_the_first_lineage_is_lost(checkpoints, add, attack, owner):
    """A log from before its first checkpoint goes on as well."""
    await add(3)
    lost = await checkpoints.make()
    await lose(owner, attack, 2)
    made = await begin_lineage(checkpoints, "an old backup", CAUSE, force=False)
    (begun,) = await lineages(checkpoints.ledger)
    assert (begun.previous, begun.shared_size) == (lost.note, 2)
    assert made.checkpoint.size == 3


async def test_a_log_that_contradicts_itself(checkpoints, add, attack):
    """No lineage is begun over events that are not those that were hashed."""
    await checkpointed(checkpoints, add, 4)
    attack("update accounts.events set state = state || ' ' where append_id = 2")
    with pytest.raises(LedgerForked, match="position 2"):
        await begin_lineage(checkpoints, "no reason", CAUSE, force=True)
    assert len(await lineages(checkpoints.ledger)) == 1


async def test_an_altered_log_is_not_a_lost_one(checkpoints, add, attack):
    """As long as before, and not what its own database's checkpoint says: no restore does that."""
    await checkpointed(checkpoints, add, 2, 3)
    attack(
        "update accounts.events set state = state || ' ' where append_id = 3",
        REMAKE,
        "update accounts.head set tree = null",
    )
    with pytest.raises(LineageRefused, match="altered, not lost: see `audit verify`"):
        await begin_lineage(checkpoints, "no reason", CAUSE, force=False)
    assert len(await lineages(checkpoints.ledger)) == 1


async def test_forced(checkpoints, add):
    """A lineage can be begun although nothing is lost; it shares all."""
    before = await checkpointed(checkpoints, add, 2)
    made = await begin_lineage(checkpoints, "a new home", CAUSE, force=True)
    begun = (await lineages(checkpoints.ledger))[-1]
    assert (begun.previous, begun.shared_size) == (before.note, 3)
    assert made.checkpoint.size == 4


async def test_without_an_archive(accounts, add):
    """The stored checkpoints are the past then."""
    alone = Checkpoints(accounts, [KEY], None)
    before = await checkpointed(alone, add, 2)
    await begin_lineage(alone, "a new home", CAUSE, force=True)
    begun = (await lineages(accounts))[-1]
    assert (begun.previous, begun.shared_size) == (before.note, 3)


async def test_published_leaves_that_are_wrong(checkpoints, add, attack, owner, tmp_path):
    """They are believed only as far as they make the signed root: the checkpoint before counts."""
    lost = await checkpointed(checkpoints, add, 2, 3)
    await lose(owner, attack, 5)
    folder = tmp_path / "published" / "checkpoints" / lost.checkpoint.origin
    (path,) = folder.glob("*006.leaves")
    leaves = path.read_bytes()
    path.write_bytes(leaves[:-1] + bytes([leaves[-1] ^ 1]))
    assert await parted(checkpoints) == (6, 3, 5)
    path.unlink()
    assert await parted(checkpoints) == (6, 3, 5)


async def test_read_in_parts(checkpoints, add, attack, owner, monkeypatch):
    """However the log is cut for reading."""
    await checkpointed(checkpoints, add, 2, 3, 3)
    await lose(owner, attack, 7)
    monkeypatch.setattr(log_tree, "EVENTS_MAX", 2)
    assert await parted(checkpoints) == (9, 7, 7)


async def test_a_rotated_key(checkpoints, accounts, add, attack, owner, tmp_path):
    """What an older key has signed is the past too; the new lineage is the newer key's."""
    lost = await checkpointed(checkpoints, add, 2, 3)
    await lose(owner, attack, 4)
    newer = NoteKey.of_seed("example.net/ledger", uuid4().bytes * 2)
    rotated = Checkpoints(
        accounts,
        [newer, NoteKey.parse(KEY.public_text)],
        directory_at(tmp_path / "published"),
    )
    made = await begin_lineage(rotated, "moved", CAUSE, force=False)
    assert made.checkpoint.origin.startswith("example.net/ledger/accounts/lin_")
    begun = (await lineages(accounts))[-1]
    assert (begun.previous, begun.shared_size) == (lost.note, 4)
    assert Checkpoint.open(made.note, [newer]) == made.checkpoint
