"""Verifying a ledger: what holds, what is detected, and what cannot be detected."""

import asyncio

import pytest

from service.evidence.authorisation import authorised
from service.evidence.checkpoint import Checkpoint
from service.evidence.note import NoteKey
from service.evidence.verify.expectations import Evidence, published_evidence
from service.evidence.verify.ledger_verifier import size_of, verify_ledger
from service.facts.lineages import lineage_stream
from service.facts.partners import PartnerApproved
from service.ledger.merkle import EMPTY_ROOT
from tests.evidence.checkpointing import directory_at
from tests.evidence.rewrites import make_hashes_again
from tests.evidence.scene import Scene, append, judged
from tests.evidence.sealed_log import KEY, ORIGIN, SCHEMA, SIZE, SIZES, disarm

OTHER_KEY = NoteKey.of_seed(KEY.name, b"\2" * 32)
NOTHING = Evidence([KEY])


async def test_an_empty_ledger_holds(accounts):
    """Without events and checkpoints the root is that of an empty tree."""
    verdict = await verify_ledger(accounts.database, NOTHING)
    assert (verdict.ok, verdict.size, verdict.checkpoints) == (True, 0, 0)
    assert verdict.root == "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    assert EMPTY_ROOT.hex().startswith("e3b0c442")


async def test_a_log_with_events_that_wait_holds(log, accounts):
    """Under the application's role; waiting events are checked but do not count."""
    read = []
    verdict = await verify_ledger(accounts.database, log.published, read.append)
    assert (verdict.ok, verdict.fault, verdict.position) == (True, None, None)
    assert (verdict.size, verdict.checkpoints, verdict.lineages) == (SIZE, 3, 1)
    assert sum(read) == await size_of(accounts.database) == SIZE


async def test_it_verifies_while_the_service_goes_on(log, accounts):
    """It reads one snapshot, so concurrent appends and numbering are no fault."""
    done = asyncio.Event()

    async def write():
        while not done.is_set():
            await append(accounts, PartnerApproved("ptn_1"))

    writing = asyncio.create_task(write())
    verdicts = [await verify_ledger(accounts.database, log.published) for _ in range(30)]
    done.set()
    await writing
    assert {one.fault for one in verdicts} == {None}
    assert verdicts[-1].size > verdicts[0].size


async def test_published_evidence_is_fetched(log, accounts, tmp_path):
    """Notes and leaves are read from the archive; files of other ledgers are ignored."""
    place = directory_at(tmp_path / "published")
    for note in log.published.published:
        name = note.leaves_name
        await place.put(name.replace(".leaves", ".txt"), note.text.encode())
        await place.put(name, await log.published.read(name))
    other = NoteKey.of_seed("example.com/other", b"\3" * 32)
    foreign = Checkpoint(f"{other.name}/accounts/1", 5, bytes(32))
    await place.put(f"checkpoints/{foreign.origin}/{5:020}.txt", foreign.sign(other).encode())
    await place.put(f"checkpoints/{KEY.name}/live/1/{5:020}.txt", b"of another ledger")
    evidence = await published_evidence(place, "accounts", [KEY], None)
    assert await evidence.read(f"checkpoints/{ORIGIN}/{SIZES[0]:020}.txt")
    assert await evidence.read(f"checkpoints/{ORIGIN}/{1:020}.txt") is None
    sizes = [note.size for note in evidence.published]
    assert sizes == [5, *SIZES]
    verdict = await verify_ledger(accounts.database, evidence)
    assert (verdict.ok, verdict.published) == (True, len(SIZES))
    assert await evidence.read(log.published.published[0].leaves_name) is not None


async def test_stored_checkpoints_must_be_published(log, owner_connection):
    """An archive that is empty or lacks one is reported; only the newest may be late.

    The verdict says how many published checkpoints were consulted, and None where none could be.
    """
    notes = log.published.published
    for published, position in (
        (None, None),
        (notes, None),
        (notes[:2], None),
        ([], SIZES[0]),
        ([notes[0], notes[2]], SIZES[1]),
        (notes[1:], SIZES[0]),
    ):
        verdict = await judged(owner_connection, Evidence([KEY], published))
        assert (verdict.ok, verdict.position) == (position is None, position)
        assert position is None or "is not where they are published" in verdict.fault
        assert verdict.published == (None if published is None else len(published))


async def test_what_was_published_meanwhile_is_no_fault(log, owner_connection):
    """Names listed before the database was read are listed again."""
    asked = []

    async def read(name, _bytes_max):
        asked.append(name)
        return b""

    evidence = Evidence([KEY], log.published.published[:1], read=read)
    assert (await judged(owner_connection, evidence)).ok
    assert asked == [f"checkpoints/{ORIGIN}/{SIZES[1]:020}.txt"]


async def test_a_published_note_that_was_altered_is_a_fault(log, owner_connection):
    """No text, no note, or another's note: each names the size that it is published under."""
    (first, second, third) = log.published.published
    altered = second.text.replace(f"\n{second.size}\n", f"\n{second.size + 1}\n")
    for broken, said in (
        (second._replace(text=None), "is not sound: not a signed note"),
        (second._replace(text=altered), "the signature of"),
        (second._replace(text=first.text), "published under another one's name"),
    ):
        verdict = await judged(owner_connection, Evidence([KEY], [first, broken, third]))
        assert (verdict.ok, verdict.position) == (False, SIZES[1])
        assert said in verdict.fault
    lost = second._replace(origin=f"{ORIGIN}9", text=None)  # of a lineage that the log has lost
    verdict = await judged(owner_connection, Evidence([KEY], [first, second, lost, third]))
    assert (verdict.ok, verdict.position) == (False, SIZES[1])
    assert "is not sound: not a signed note" in verdict.fault


@pytest.mark.usefixtures("log")
async def test_a_missing_public_key_is_reported(owner_connection):
    """Unverifiable signatures do not hold; adding the key resolves it."""
    verdict = await judged(owner_connection, Evidence([]))
    assert verdict.position == 5  # where the lineage begins, which the key authorised
    assert "signed by no key that is known here" in verdict.fault
    assert (await judged(owner_connection, Evidence([OTHER_KEY, KEY]))).ok


async def test_a_kept_checkpoint_is_checked(log, owner_connection):
    """An old one holds; another root, a larger size or another origin does not."""
    first = Checkpoint.open(log.published.published[0].text, [KEY])
    size, root = first.size, first.root
    other = f"the event at position {size + 1} is not what was signed"
    for given, position, said in (
        (Checkpoint(ORIGIN, size, root), None, None),
        (Checkpoint(ORIGIN, size + 1, root), size + 1, other),
        (Checkpoint(ORIGIN, size, bytes(32)), size, "contradicts another one that holds"),
        (Checkpoint(ORIGIN, SIZE + 9, root), SIZE + 1, f"The log ends at position {SIZE}"),
        (Checkpoint(f"{ORIGIN}x", size, root), size, "no lineage of this log"),
    ):
        evidence = Evidence([KEY], log.published.published, given)
        verdict = await judged(owner_connection, evidence)
        assert (verdict.ok, verdict.position) == (said is None, position)
        assert said is None or said in verdict.fault


async def test_a_truncated_log_is_detected_by_one_published_checkpoint(log, owner_connection):
    """Events, log, head and stored checkpoints were all cut."""
    await disarm(owner_connection, bare=False)
    scene = Scene(owner_connection, None, log, bare=False)
    for table in ("log", "events", "pending", "checkpoints"):
        await owner_connection.execute(f"truncate accounts.{table} cascade")
    await make_hashes_again(scene, 1, forget_checkpoints=True)
    assert (await judged(owner_connection, NOTHING)).ok
    verdict = await judged(owner_connection, Evidence([KEY], log.published.published[2:]))
    assert (verdict.ok, verdict.size, verdict.position) == (False, 0, 1)


async def test_what_was_never_signed_can_be_rewritten_unseen(log, owner_connection):
    """The limit: after the last checkpoint, recomputed hashes hide any change."""
    await disarm(owner_connection, bare=False)
    scene = Scene(owner_connection, None, log, bare=False)
    row = log.rows[SIZES[-1]]
    await scene.run("update accounts.events set state = '{}' where append_id = $1", row.append_id)
    assert (await judged(owner_connection, log.published)).position == SIZES[-1] + 1
    await make_hashes_again(scene, row.position, forget_checkpoints=True)
    assert (await judged(owner_connection, log.published)).ok


async def test_leaves_that_do_not_lead_to_the_signed_root_are_not_believed(log, owner_connection):
    """With forged or cut leaves only the range between two checkpoints is named."""
    before, after, forged_at = SIZES[0], SIZES[1], SIZES[0] + 5
    await disarm(owner_connection, bare=False)
    scene = Scene(owner_connection, None, log, bare=False)
    await scene.run(
        "update accounts.events set state = '{}' where append_id = $1",
        log.rows[forged_at - 1].append_id,
    )
    await make_hashes_again(scene, forged_at, forget_checkpoints=True)
    told = await judged(owner_connection, log.published)
    assert told.position == forged_at
    assert told.fault == (
        f"The event at position {forged_at} is not the one that was signed: the checkpoint of"
        f" {after} events was published with another hash of it."
    )
    for leaves in (b"\0" * 32 * (after - before), b"", b"\0" * 31, b"\0" * 32 * 200):

        async def forged(_name, _bytes_max, leaves=leaves):
            return leaves

        evidence = Evidence([KEY], log.published.published, read=forged)
        verdict = await judged(owner_connection, evidence)
        assert verdict.position == before + 1
        said = f"events at positions {before + 1} to {after} is not what was signed"
        assert said in verdict.fault


async def test_a_log_from_before_there_were_trees_holds(accounts, owner_connection):
    """Its head has no tree until its next batch; with a lineage a tree is required."""
    await append(accounts, PartnerApproved("ptn_1"))
    await owner_connection.execute("update accounts.head set tree = null")
    assert (await judged(owner_connection, NOTHING)).ok
    await append(accounts, authorised(KEY, ORIGIN, "first"), stream=lineage_stream(SCHEMA))
    await owner_connection.execute("update accounts.head set tree = null")
    assert (await judged(owner_connection, NOTHING)).position == 2


async def test_columns_of_another_type_are_a_fault(log, owner_connection):
    """Even changed column types end in a verdict."""
    await disarm(owner_connection, bare=True)
    await owner_connection.execute("drop view accounts.stored_events")
    await owner_connection.execute(
        "alter table accounts.events alter state type text using encode(state, 'escape')"
    )
    verdict = await judged(owner_connection, log.published)
    assert (verdict.ok, verdict.position) == (False, 1)


async def test_invalid_positions_are_a_fault(log, owner_connection):
    """Rows below the first position or without one are reported after those of the log."""
    await disarm(owner_connection, bare=True)
    await owner_connection.execute("insert into accounts.log values (-3, 1, '')")
    verdict = await judged(owner_connection, log.published)
    assert (verdict.ok, verdict.position) == (False, None)
    assert verdict.fault == "The log has a row at -3, which is no position."
    await owner_connection.execute("update accounts.log set position = null where position = -3")
    assert (await judged(owner_connection, log.published)).position == SIZE


async def test_what_the_service_signs_and_publishes_holds(accounts, add, checkpoints, place):
    """The service's own checkpoints hold, stored and published, one after another."""
    for events in (3, 4):
        await add(events)
        await checkpoints.make()
    evidence = await published_evidence(place, "accounts", checkpoints.keys, None)
    verdict = await verify_ledger(accounts.database, evidence)
    assert (verdict.fault, verdict.checkpoints, verdict.lineages) == (None, 2, 1)
    assert verdict.size == 8
