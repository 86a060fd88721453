"""Proofs in files of their own: of consistency, of absence and of a history."""

import msgspec
import pytest
from psycopg import ClientCursor

from service.evidence.checkpoints.divergence import begin_lineage
from service.evidence.checkpoints.names import streams_name
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.export.export_writer import Signed
from service.evidence.export.format import EvidenceFault, encode
from service.evidence.proofs import streams, timeline
from service.evidence.proofs.absence import check_absence
from service.evidence.proofs.consistency import check_consistency, make_consistency
from service.evidence.proofs.streams import ClaimName, begins_at, prove_absence
from service.evidence.proofs.timeline import (
    ProofTooLarge,
    SignedLedger,
    check_history,
    prove_history,
)
from service.evidence.replay.history import history as read_history
from service.evidence.streams_note import StreamsNote, stream_leaf
from service.ledger.sequencer import Sequencer
from tests.evidence.checkpointing import KEY, checkpointed
from tests.evidence.evidence_world import KEY as WORLDS_KEY
from tests.ledger.merkle_tree import MerkleTree
from tests.ledger.samples import CAUSE
from tests.protections import put_back, take_off
from tests.tables import every_row

FIRSTS = """
select uuid_send(originator_id), position from live.events join live.log using (append_id)
where originator_version = 1 and position <= %s order by originator_id
"""

UNNUMBER = """
update live.log set append_id = -append_id
where append_id in (select append_id from live.events where originator_id = %s)
"""


@pytest.fixture
async def made(checkpoints, add):
    """Return the signed checkpoints of a log that grew between them."""
    found = []
    for count in (2, 3, 40):
        await add(count)
        one = await checkpoints.make()
        found.append(Signed(one.checkpoint, one.note))
    return found


async def test_a_log_continues_its_older_checkpoints(made, accounts):
    """Each of them, itself included; a checkpoint of another log has no proof."""
    for older in made:
        proof = await make_consistency(accounts, older, made[2], [KEY])
        proved = check_consistency(encode(proof), [KEY])
        assert (proved.older, proved.checkpoint) == (older.checkpoint, made[2].checkpoint)
        assert proof.lineages is None
    with pytest.raises(EvidenceFault, match="counts 46 events"):
        await make_consistency(accounts, made[2], made[1], [KEY])
    other = made[0].checkpoint._replace(root=bytes(32))
    forged = Signed(other, other.sign(KEY))
    with pytest.raises(EvidenceFault, match="does not begin with the older"):
        await make_consistency(accounts, forged, made[1], [KEY])
    other = made[1].checkpoint._replace(root=bytes(32))
    with pytest.raises(EvidenceFault, match="does not make the checkpoint's root"):
        await make_consistency(accounts, made[0], Signed(other, other.sign(KEY)), [KEY])


async def test_lineages_link_two_origins(made, checkpoints, accounts, add):
    """Up to what they share; the events with which they begin are in the file."""
    await begin_lineage(checkpoints, "another key", CAUSE, force=True)
    now = await checkpointed(checkpoints, add, 2)
    newer = Signed(now.checkpoint, now.note)
    for older in made:
        proof = await make_consistency(accounts, older, newer, [KEY])
        proved = check_consistency(encode(proof), [KEY])
        assert [one.origin for one in proved.lineages][-1] == now.checkpoint.origin
        assert len(proof.lineages or ()) == 2
    stranger = made[0].checkpoint._replace(origin="example.com/claim-ledger/accounts/lin_9")
    with pytest.raises(EvidenceFault, match="nothing here links"):
        await make_consistency(accounts, Signed(stranger, stranger.sign(KEY)), newer, [KEY])


async def test_a_claim_is_absent_between_its_neighbours(keyed, owner, place, monkeypatch):
    """At each checkpoint, wherever its place is among the streams, and published once."""
    monkeypatch.setattr(streams, "PAGE_STREAMS", 3)
    checkpoints = Checkpoints(keyed.service.modes["live"].ledger, [KEY], place)
    seen, made = set(), []
    for _ in range(2):
        made.append(Signed(*(await checkpoints.make())[:2]))
        await keyed.entity()
    with every_row() as row:
        for signed in made:
            size = signed.checkpoint.size
            firsts = owner.execute(FIRSTS, [size]).fetchall()
            root = MerkleTree([stream_leaf(id_, at) for id_, at in firsts]).root()
            for number in range(12):
                with row(size, number):
                    name = ClaimName("live", 0, "ptn_1", "ent_1", f"case-{number}")
                    proof = await prove_absence(checkpoints, name, signed, lambda _count: None)
                    absent = check_absence(encode(proof), [KEY])
                    assert (absent.stream, absent.checkpoint) == (name.stream, signed.checkpoint)
                    note = StreamsNote.open(proof.streams, [KEY])
                    assert note == (signed.checkpoint, len(firsts), root)
                    assert proof.index == sum(id_ < name.stream.bytes for id_, _ in firsts)
                    seen.add(proof.index)
            published = streams_name(signed.checkpoint.origin, size)
            assert await place.get(published) == proof.streams.encode()
    assert len(seen) > 5


async def test_another_index_of_a_checkpoint_is_not_signed_over(keyed, place):
    """What was published says something else: one of them is a lie."""
    checkpoints = Checkpoints(keyed.service.modes["live"].ledger, [KEY], place)
    signed = Signed(*(await checkpoints.make())[:2])
    checkpoint, name = signed.checkpoint, ClaimName("live", 0, "ptn_1", "ent_1", "case-9")
    lie = StreamsNote(checkpoint, 3, bytes(32))
    await place.put(streams_name(checkpoint.origin, checkpoint.size), lie.sign(KEY).encode())
    with pytest.raises(EvidenceFault, match="another index was published, of 3 streams"):
        await prove_absence(checkpoints, name, signed, lambda _count: None)
    other = checkpoint._replace(root=bytes(32))
    forged = Signed(other, other.sign(KEY))
    with pytest.raises(EvidenceFault, match="are not what was signed"):
        await prove_absence(checkpoints, name, forged, lambda _count: None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("delete from live.events where originator_id = %s", "are not what was signed"),
        ("update live.events set state = '{}' where originator_id = %s", "are not what was signed"),
        (
            UNNUMBER,
            "are not what was signed",
        ),
        ("create policy p on live.events using (originator_id <> %s)", "which no migration made"),
    ],
)
async def test_no_index_is_signed_of_a_log_that_is_another_one(keyed, owner, place, change, said):
    """Not even where the claim's own event is the one that is missing, and the rest holds."""
    checkpoints = Checkpoints(keyed.service.modes["live"].ledger, [KEY], place)
    row = await keyed.service.modes["live"].claim_list.by_id(keyed.about[1])
    signed = Signed(*(await checkpoints.make())[:2])
    take_off(owner, "live.events", "live.log")
    with ClientCursor(owner) as cursor:
        cursor.execute(change, [row["stream_id"]])
    put_back(owner, "live.events", "live.log")
    name = ClaimName("live", 0, row["partner_id"], row["entity_id"], "case-1")
    with pytest.raises(EvidenceFault, match=said):
        await prove_absence(checkpoints, name, signed, lambda _count: None)


async def test_a_claim_exists_as_of_its_first_position(keyed):
    """Not before; by the three names that its partner gave it."""
    ledger, (entity_id, claim_id) = keyed.service.modes["live"].ledger, keyed.about
    row = await keyed.service.modes["live"].claim_list.by_id(claim_id)
    await Sequencer(ledger).number_committed()
    name = ClaimName("live", 0, row["partner_id"], entity_id, "case-1")
    assert name.stream == row["stream_id"]
    at = await begins_at(ledger.database, name.stream, 1_000_000)
    assert at is not None
    assert await begins_at(ledger.database, name.stream, at - 1) is None


async def test_a_history_is_proved(keyed):
    """Each event of a claim; a file that names another id is refused."""
    service, (_, claim_id) = keyed.service, keyed.about
    checkpoints = service.checkpoints("live")
    signed = Signed(*(await checkpoints.make())[:2])
    found = await read_history([checkpoints.ledger], claim_id, 100)
    named = [(one.ledger, one.position) for one in found.entries]
    positions = [position for _, position in named]
    proof = await prove_history(claim_id, [SignedLedger(checkpoints.ledger, signed)], named)
    line, parts = check_history(encode(proof), [WORLDS_KEY])
    assert (line.subject, [one.ledger for one, _ in parts]) == (claim_id, ["live"])
    assert [one.position for one in parts[0][1].events] == positions
    other = msgspec.structs.replace(proof, subject="clm_other")
    with pytest.raises(EvidenceFault, match="does not name the id") as refused:
        check_history(encode(other), [WORLDS_KEY])
    assert refused.value.position == positions[0]


async def test_a_history_that_is_too_large_for_a_file_is_read_no_further(keyed, monkeypatch):
    """How many of the newest events one has room for is known as soon as it is full."""
    checkpoints = keyed.service.checkpoints("accounts")
    signed = SignedLedger(checkpoints.ledger, Signed(*(await checkpoints.make())[:2]))
    named = [("accounts", position) for position in range(1, signed.signed.checkpoint.size + 1)]
    monkeypatch.setattr(timeline, "BATCH_EVENTS", 2)
    whole = len(encode(await prove_history("x", [signed], named[-3:])))
    monkeypatch.setattr(timeline, "LINE_BYTES_MAX", whole)
    read, lines = list[int](), timeline.event_lines

    def watched(database, positions):
        read.extend(positions)
        return lines(database, positions)

    monkeypatch.setattr(timeline, "event_lines", watched)
    last = len(named)
    waiting = [*named, ("accounts", None)]
    with pytest.raises(ProofTooLarge) as refused:
        await prove_history("x", [signed], waiting)
    assert refused.value.fits == 4, "what has no number counts for --limit"
    assert read == [last, last - 2, last - 1, last - 4, last - 3][: len(read)]
    proof = await prove_history("x", [signed], waiting[-4:])
    assert len(encode(proof)) <= whole
    assert [one.position for one in proof.ledgers[0].events] == [last - 2, last - 1, last]
