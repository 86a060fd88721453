"""An attacker who writes to the database without a key appends a lineage: nothing is undone."""

import pytest

from service.evidence.authorisation import authorised
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.divergence import begin_lineage
from service.evidence.checkpoints.lineage import lineages
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.checkpoints.names import BEGUN, begun_name, streams_name
from service.evidence.lineages import lineages_of
from service.evidence.note import NoteKey
from service.evidence.streams_note import StreamsNote
from service.evidence.verify.expectations import published_evidence
from service.evidence.verify.ledger_verifier import verify_ledger
from service.facts.lineages import LineageBegun, lineage_stream
from service.ledger.events import Cause
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries
from service.ledger.writing import Append
from tests.evidence.checkpointing import KEY, checkpointed, lose, stored_in
from tests.ledger.raw_events import RawEvent, write_foreign

CAUSE = Cause("staff:test", "req_test")
LINEAGES = queries("service.evidence.checkpoints").lineages
STRANGER = NoteKey.of_seed(KEY.name, b"\7" * 32)


def beside(origin):
    """Return another origin of the same moment."""
    return origin[:-1] + ("0" if origin[-1] != "0" else "1")


async def verified(accounts, place):
    """Return the verdict over the database and the archive."""
    evidence = await published_evidence(place, "accounts", [KEY], None)
    return await verify_ledger(accounts.database, evidence)


async def appended(accounts, begun):
    """Append a lineage event as anyone with write access can."""
    async with accounts.transaction() as transaction:
        stream = lineage_stream("accounts")
        version = len(await transaction.read(stream))
        await transaction.append(Append(stream, version, [begun], CAUSE))


async def refused(checkpoints, accounts, place):
    """Fail unless nothing is signed and the verdict reports it; return the verdict."""
    stored = await stored_in(checkpoints)
    await Sequencer(checkpoints.ledger).number_committed()
    with pytest.raises(LedgerForked):
        await checkpoints.make()
    assert (await checkpoints.state()).forked
    assert await stored_in(checkpoints) == stored
    verdict = await verified(accounts, place)
    assert not verdict.ok
    return verdict


@pytest.mark.parametrize("kept", [2, 9])
@pytest.mark.parametrize("how", ["none", "copied", "unknown key", "changed"])
async def test_a_lineage_without_the_key_is_refused(
    checkpoints, accounts, add, attack, owner, place, kept, how
):
    """With a whole or a cut log, and with no, a genuine or a stranger's authorisation."""
    old = await checkpointed(checkpoints, add, 1)
    await checkpointed(checkpoints, add, 7)
    (first,) = await lineages(accounts)
    if kept < 9:
        await lose(owner, attack, kept)
        await add(9)
    forged = authorised(STRANGER, beside(first.origin), "a restore", old.note, 1)
    notes = {
        "none": "",
        "copied": first.authorisation,
        "unknown key": forged.authorisation,
        "changed": first.authorisation.replace(first.origin, forged.origin),
    }
    values = (forged.origin, forged.reason, notes[how], forged.previous, forged.shared_size)
    await appended(accounts, LineageBegun(*values))
    verdict = await refused(checkpoints, accounts, place)
    assert verdict.position is not None


async def test_what_is_said_of_a_forged_lineage_is_true(checkpoints, accounts, add):
    """No checkpoint is missing because of it, and no key was replaced, unless it has another's."""
    made = await checkpointed(checkpoints, add, 2)
    forged = authorised(STRANGER, beside(made.checkpoint.origin), "a restore", made.note, 1)
    await appended(accounts, forged)
    with pytest.raises(LedgerForked, match="began it, or its public key belongs"):
        await checkpoints.make()
    assert await checkpoints.latest() == made[:2], "what was signed is still there to be exported"


async def test_a_lineage_without_a_signature_is_nobody_s(checkpoints, accounts, add):
    """Its author had no key: none is missing in the settings."""
    made = await checkpointed(checkpoints, add, 2)
    forged = authorised(KEY, beside(made.checkpoint.origin), "a restore", made.note, 1)
    values = (forged.origin, forged.reason, "no note", forged.previous, forged.shared_size)
    await appended(accounts, LineageBegun(*values))
    with pytest.raises(LedgerForked, match=r"somebody else than this service began it$"):
        await checkpoints.make()


async def test_an_unused_genuine_lineage_is_refused(
    checkpoints, accounts, add, attack, owner, place
):
    """It was begun on an abandoned replica and does not override later checkpoints."""
    old = await checkpointed(checkpoints, add, 2)
    origin = beside(old.checkpoint.origin)
    unused = authorised(KEY, origin, "given up", old.note, 2)
    await checkpointed(checkpoints, add, 6)
    await lose(owner, attack, 3)
    await appended(accounts, unused)
    await add(9)
    await refused(checkpoints, accounts, place)


async def test_a_lineage_of_an_earlier_fork_is_refused(
    checkpoints, accounts, add, attack, owner, place
):
    """Its own checkpoints bind the log, and its predecessor has a successor already."""
    await checkpointed(checkpoints, add, 4)
    await lose(owner, attack, 3)
    await begin_lineage(checkpoints, "once", CAUSE, force=True)
    earlier = (await lineages(accounts))[-1]
    await lose(owner, attack, 3)
    await begin_lineage(checkpoints, "twice", CAUSE, force=True)
    await checkpointed(checkpoints, add, 5)
    assert (await verified(accounts, place)).ok
    await appended(accounts, earlier)
    await refused(checkpoints, accounts, place)


async def test_another_installations_origin_is_refused(checkpoints, accounts, add):
    """Nothing is signed under another installation's name, even with an authorisation."""
    begun = authorised(KEY, "example.net/other/accounts/lin_1", "first")
    await appended(accounts, begun)
    await add(1)
    with pytest.raises(LedgerForked, match="outside what our keys sign"):
        await checkpoints.make()


@pytest.mark.parametrize("lineage_id", ["lin_0", "lin_zzz"])
async def test_an_unknown_published_origin_blocks_signing(checkpoints, place, add, lineage_id):
    """Whether older or newer by its id, nothing is signed."""
    made = await checkpoints.make()
    home, _, _ = made.checkpoint.origin.rpartition("/")
    other = Checkpoint(f"{home}/{lineage_id}", 7, bytes(32))
    await place.put(begun_name(other.origin), BEGUN)
    await add(1)
    assert (await checkpoints.make()).is_new, "nothing was published of it"
    await place.put(f"checkpoints/{other.origin}/{7:020}.txt", other.sign(KEY).encode())
    await add(1)
    with pytest.raises(LedgerForked, match="knows nothing of it"):
        await checkpoints.make()


async def test_checkpoints_set_aside_are_counted(checkpoints, accounts, add, attack, owner, place):
    """The verdict has their number and the largest size that a restore set aside."""
    await checkpointed(checkpoints, add, 2, 2)
    await lose(owner, attack, 2)
    await begin_lineage(checkpoints, "a restore", CAUSE, force=False)
    verdict = await verified(accounts, place)
    assert (verdict.ok, verdict.set_aside, verdict.set_aside_size) == (True, 2, 5)


async def test_an_index_of_streams_that_were_lost_is_compared_with_nothing(
    checkpoints, accounts, add, attack, owner, place
):
    """It is of a checkpoint that is set aside, as a log says that lost some of its events."""
    last = (await checkpointed(checkpoints, add, 2, 2)).checkpoint
    index = StreamsNote(last, 5, bytes(32)).sign(KEY)
    await place.put(streams_name(last.origin, last.size), index.encode())
    await lose(owner, attack, 4)
    await begin_lineage(checkpoints, "a restore", CAUSE, force=False)
    verdict = await verified(accounts, place)
    assert (verdict.ok, verdict.set_aside, verdict.fault) == (True, 1, None)


async def test_lineages_lost_in_succession_are_reported(
    checkpoints, accounts, add, attack, owner, place
):
    """Each loss is reported, and the log holds again."""
    await checkpointed(checkpoints, add, 4)
    for _ in range(2):  # the second time the first new lineage is lost without a word of it left
        await lose(owner, attack, 3)
        await begin_lineage(checkpoints, "lost", CAUSE, force=False)
    await checkpointed(checkpoints, add, 1)
    verdict = await verified(accounts, place)
    assert (verdict.fault, verdict.ok) == (None, True)


async def test_what_others_append_as_lineages_takes_little_memory(accounts):
    """What is larger than any is not read, and not sound; the rest of so much is left out."""
    stream, large = lineage_stream("accounts"), b"x" * (3 << 19)
    await write_foreign(
        accounts, *(RawEvent(stream, version, "LineageBegun", large) for version in (1, 2, 3))
    )
    rows = await accounts.database.reads.fetch(LINEAGES, stream)
    assert [row["state"] for row in rows] == [b"", b""]
    async with accounts.database.reads.connection() as connection:
        fault = (await lineages_of(connection, "accounts", [KEY])).fault
    assert fault is not None
    assert fault.sentence.endswith("without a number is not sound: it cannot be read.")
