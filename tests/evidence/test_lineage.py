"""Recovery from lost events: a new lineage, linked to the old one's last checkpoint."""

from uuid import uuid4

import pytest

from service.archive.port import ArchiveUnavailable
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints import log_tree, signing
from service.evidence.checkpoints.divergence import LineageRefused, begin_lineage, find_divergence
from service.evidence.checkpoints.lineage import lineages
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.checkpoints.names import CLOSED
from service.evidence.checkpoints.published import ArchiveEmpty
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.note import NoteKey
from service.evidence.verify.expectations import published_evidence
from service.evidence.verify.ledger_verifier import verify_ledger
from service.ledger.events import Cause
from service.ledger.sequencer import Sequencer
from tests.evidence.checkpointing import KEY, checkpointed, directory_at, lose, stored_in

REMAKE = """
update accounts.log as l set leaf_hash = accounts.leaf_hash(l.position, e.append_id,
    e.originator_id, e.originator_version, e.topic, e.state)
from accounts.events as e where e.append_id = l.append_id
"""
CAUSE = Cause("staff:test", "req_test")


async def parted(checkpoints):
    """Return the published size, the shared size, and the log's size."""
    parting = await find_divergence(checkpoints)
    assert parting is not None
    return parting.checkpoint.size, parting.shared_size, parting.size


async def test_a_sound_log_begins_no_lineage(checkpoints, add):
    """A sound log shares its whole published history."""
    await checkpointed(checkpoints, add, 2, 3)
    await add(1)
    await Sequencer(checkpoints.ledger).number_committed()
    assert await parted(checkpoints) == (6, 6, 7)
    with pytest.raises(LineageRefused, match="holds all 6 events"):
        await begin_lineage(checkpoints, "no reason", CAUSE, force=False)
    assert len(await lineages(checkpoints.ledger)) == 1


async def test_a_forced_lineage_is_begun_once_for_a_reason(checkpoints, add):
    """A command whose answer was lost is repeated; another reason begins another one."""
    await checkpointed(checkpoints, add, 1)
    first = await begin_lineage(checkpoints, "a new archive", CAUSE, force=True)
    await add(1)
    again = await begin_lineage(checkpoints, "a new archive", CAUSE, force=True)
    assert again.checkpoint.origin == first.checkpoint.origin
    assert len(await lineages(checkpoints.ledger)) == 2
    other = await begin_lineage(checkpoints, "another one", CAUSE, force=True)
    assert other.checkpoint.origin > first.checkpoint.origin


async def test_a_lineage_begins_over_no_log_but_that_which_was_published(
    checkpoints, add, attack, place
):
    """Before its first checkpoint only older ones tell of two events that changed places.

    Neither's MAC says where it stands in the log.
    """
    await checkpointed(checkpoints, add, 3)
    place.fails = {"put begun"}
    with pytest.raises(ArchiveUnavailable):
        await begin_lineage(checkpoints, "a new archive", CAUSE, force=True)
    place.fails = set()
    attack(
        "update accounts.log set append_id = -append_id where position in (2, 3)",
        "update accounts.log set append_id = 5 + append_id where append_id < 0",
        REMAKE,
        "update accounts.head set tree = null",
    )
    with pytest.raises(LedgerForked, match="the first 4 events are not those published"):
        await checkpoints.make()


async def test_what_another_database_publishes_meanwhile_is_followed(
    checkpoints, add, place, monkeypatch
):
    """Its checkpoint comes first where the origin would be closed: no lineage leaves it out."""
    made = (await checkpointed(checkpoints, add, 1)).checkpoint
    other = Checkpoint(made.origin, made.size + 1, bytes(32)).sign(KEY)
    put = place.put

    async def put_late(name, content):
        if content == CLOSED:
            monkeypatch.undo()
            assert await put(name, other.encode())
        return await put(name, content)

    monkeypatch.setattr(place, "put", put_late)
    with pytest.raises(LineageRefused, match="was published meanwhile"):
        await begin_lineage(checkpoints, "a new archive", CAUSE, force=True)
    assert len(await lineages(checkpoints.ledger)) == 1


async def test_nothing_is_stored_of_an_origin_that_is_followed_meanwhile(
    accounts, add, monkeypatch
):
    """Without an archive, in which the origin would be closed, nothing else keeps it from that."""
    one, other = (Checkpoints(accounts, [KEY], None) for _ in range(2))
    first = (await checkpointed(one, add, 1)).checkpoint.origin
    await add(1)

    async def begin_meanwhile(*_events):
        monkeypatch.undo()
        await begin_lineage(other, "a new key", CAUSE, force=True)

    monkeypatch.setattr(signing, "refuse_unbound", begin_meanwhile)
    made = await one.make()
    assert [stored.origin for stored, _ in await stored_in(one)] == [first, made.checkpoint.origin]
    assert not made.is_new


async def test_an_altered_checkpoint_is_named(checkpoints, add, attack):
    """Nothing is begun over one of the present lineage; an older one's is none of its business."""
    await checkpointed(checkpoints, add, 1)
    older = await begin_lineage(checkpoints, "a new archive", CAUSE, force=True)
    altered = "update accounts.checkpoints set note = 'junk'"
    attack(f"{altered} where size < {older.checkpoint.size}")
    newer = await begin_lineage(checkpoints, "another one", CAUSE, force=True)
    attack(altered)
    for named in (checkpoints.latest(), begin_lineage(checkpoints, "a third", CAUSE, force=True)):
        with pytest.raises(LedgerForked, match=f"of {newer.checkpoint.size} events was altered"):
            await named
    assert len(await lineages(checkpoints.ledger)) == 3


async def test_without_history_no_lineage_is_begun(checkpoints, add):
    """The first checkpoint begins the first lineage, forced or not."""
    await add(1)
    assert await find_divergence(checkpoints) is None
    with pytest.raises(LineageRefused, match="no checkpoint yet"):
        await begin_lineage(checkpoints, "no reason", CAUSE, force=True)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 7, 8])
async def test_the_shared_size_is_exact(checkpoints, add, attack, owner, size):
    """Published leaves give it to the event, also between checkpoints."""
    await checkpointed(checkpoints, add, 2, 3, 3)
    await lose(owner, attack, size)
    assert await parted(checkpoints) == (9, size, size)


async def test_replaced_events_are_not_shared(checkpoints, add, attack, owner):
    """Events that took the place of lost ones do not count."""
    await checkpointed(checkpoints, add, 2, 3, 3)
    await lose(owner, attack, 5)
    await add(7)
    await Sequencer(checkpoints.ledger).number_committed()
    assert await parted(checkpoints) == (9, 5, 12)


async def test_a_new_lineage_links_to_the_last_checkpoint(checkpoints, add, attack, owner, place):
    """Work goes on under the new origin."""
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
    assert {one.origin for one, _ in await stored_in(checkpoints)} == {first.origin, begun.origin}


async def test_lost_checkpoints_over_kept_events_are_restored(
    checkpoints, accounts, add, attack, owner, place
):
    """They are stored after their events; the new lineage adopts the published ones."""
    await checkpointed(checkpoints, add, 2, 1, 1, 3)
    before = await stored_in(checkpoints)
    await lose(owner, attack, 6)
    attack("delete from accounts.checkpoints where size > 3")
    await begin_lineage(checkpoints, "a restore", CAUSE, force=False)
    kept = await stored_in(checkpoints)
    assert kept[:-1] == before[:3]
    evidence = await published_evidence(place, "accounts", [KEY], None)
    verdict = await verify_ledger(accounts.database, evidence)
    assert (verdict.ok, verdict.fault, verdict.lineages) == (True, None, 2)


async def test_an_empty_archive_begins_no_lineage(checkpoints, accounts, add, tmp_path):
    """The database's word alone is not enough, forced or not."""
    await checkpointed(checkpoints, add, 2, 3)
    (tmp_path / "other").mkdir()
    elsewhere = Checkpoints(accounts, [KEY], directory_at(tmp_path / "other"))
    for force in (False, True):
        with pytest.raises(ArchiveEmpty, match="no checkpoint of accounts"):
            await begin_lineage(elsewhere, "no reason", CAUSE, force=force)
    assert len(await lineages(accounts)) == 1


async def test_a_second_loss_diverges_from_the_second_lineage(checkpoints, add, attack, owner):
    """This holds even if the second lineage's own event is lost."""
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


async def test_a_log_from_before_its_first_checkpoint_goes_on(checkpoints, add, attack, owner):
    """Its lineage is lost with its checkpoints."""
    lost = await checkpointed(checkpoints, add, 3)
    await lose(owner, attack, 2)
    made = await begin_lineage(checkpoints, "an old backup", CAUSE, force=False)
    (begun,) = await lineages(checkpoints.ledger)
    assert (begun.previous, begun.shared_size) == (lost.note, 2)
    assert made.checkpoint.size == 3


async def test_an_inconsistent_log_begins_no_lineage(checkpoints, add, attack):
    """Its events are not those that were hashed."""
    await checkpointed(checkpoints, add, 4)
    attack("update accounts.events set state = state || ' ' where append_id = 2")
    with pytest.raises(LedgerForked, match="position 2"):
        await begin_lineage(checkpoints, "no reason", CAUSE, force=True)
    assert len(await lineages(checkpoints.ledger)) == 1


async def test_an_altered_log_is_not_a_lost_one(checkpoints, add, attack):
    """It has its full size but contradicts its own checkpoint: no restore does that."""
    await checkpointed(checkpoints, add, 2, 3)
    attack(
        "update accounts.events set state = state || ' ' where append_id = 2",
        REMAKE,
        "update accounts.head set tree = null",
    )
    with pytest.raises(LineageRefused, match="altered, not lost: see `audit verify`"):
        await begin_lineage(checkpoints, "no reason", CAUSE, force=False)
    assert len(await lineages(checkpoints.ledger)) == 1


async def test_a_lineage_can_be_forced(checkpoints, add):
    """Although nothing is lost, a lineage begins that shares everything."""
    before = await checkpointed(checkpoints, add, 2)
    made = await begin_lineage(checkpoints, "a new home", CAUSE, force=True)
    begun = (await lineages(checkpoints.ledger))[-1]
    assert (begun.previous, begun.shared_size) == (before.note, 3)
    assert made.checkpoint.size == 4


async def test_without_an_archive_stored_checkpoints_are_the_history(accounts, add):
    """Stored checkpoints take the place of published ones."""
    alone = Checkpoints(accounts, [KEY], None)
    before = await checkpointed(alone, add, 2)
    await begin_lineage(alone, "a new home", CAUSE, force=True)
    begun = (await lineages(accounts))[-1]
    assert (begun.previous, begun.shared_size) == (before.note, 3)


async def test_wrong_published_leaves_are_ignored(checkpoints, add, attack, owner, tmp_path):
    """Leaves must lead to the signed root; otherwise the previous checkpoint counts."""
    lost = await checkpointed(checkpoints, add, 2, 3)
    await lose(owner, attack, 5)
    folder = tmp_path / "published" / "checkpoints" / lost.checkpoint.origin
    (path,) = folder.glob("*006.leaves")
    leaves = path.read_bytes()
    path.write_bytes(leaves[:-1] + bytes([leaves[-1] ^ 1]))
    assert await parted(checkpoints) == (6, 3, 5)
    path.unlink()
    assert await parted(checkpoints) == (6, 3, 5)


async def test_the_log_can_be_read_in_parts(checkpoints, add, attack, owner, monkeypatch):
    """The size of the parts does not matter."""
    await checkpointed(checkpoints, add, 2, 3, 3)
    await lose(owner, attack, 7)
    monkeypatch.setattr(log_tree, "EVENTS_MAX", 2)
    assert await parted(checkpoints) == (9, 7, 7)


async def test_a_rotated_key_keeps_the_history(checkpoints, accounts, add, attack, owner, tmp_path):
    """Checkpoints of an older key count too; the new lineage is signed by the newer key."""
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
