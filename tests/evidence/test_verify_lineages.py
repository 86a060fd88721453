"""Lineages: the log records what a restore lost, and the record itself must be sound."""

import pytest

from service.evidence.authorisation import authorised
from service.evidence.checkpoint import Checkpoint
from service.evidence.note import NoteKey
from service.evidence.verify.expectations import Evidence, ReadNote
from service.facts.lineages import LineageBegun, lineage_stream
from service.facts.partners import PartnerApproved
from service.ledger.merkle import CompactRange
from tests.evidence.rewrites import make_hashes_again
from tests.evidence.scene import Scene, append, judged
from tests.evidence.sealed_log import KEY, ORIGIN, SCHEMA, disarm

OTHER_KEY = NoteKey.of_seed(KEY.name, b"\2" * 32)
NOTHING = Evidence([KEY])


async def test_a_restore_that_lost_events(accounts, owner_connection):
    """A later lineage records the loss, so lost checkpoints are not held against the log.

    The events in common still are, and so is a checkpoint that somebody gives of what was lost.
    """
    await append(accounts, authorised(KEY, ORIGIN, "1"), stream=lineage_stream(SCHEMA))
    await append(accounts, *[PartnerApproved("ptn_1")] * 4)
    shared = await _checkpoint(accounts, ORIGIN)
    lost = Checkpoint(ORIGIN, 8, b"\7" * 32)
    published = [_published(shared), _published(lost)]
    assert (await judged(owner_connection, Evidence([KEY], published))).position == 5
    await _store(owner_connection, shared)
    assert (await judged(owner_connection, Evidence([KEY], published))).position == 6
    begun = authorised(KEY, f"{ORIGIN}b", "2", lost.sign(KEY), 5)
    await append(accounts, begun, stream=lineage_stream(SCHEMA), version=1)
    after = await _checkpoint(accounts, f"{ORIGIN}b")
    await _store(owner_connection, after)
    published.append(_published(after))
    verdict = await judged(owner_connection, Evidence([KEY], published))
    assert (verdict.ok, verdict.lineages, verdict.checkpoints) == (True, 2, 2)
    assert (verdict.set_aside, verdict.set_aside_size) == (1, 8)
    assert verdict.published == 3
    given = await judged(owner_connection, Evidence([KEY], published, lost))
    assert (given.ok, given.position) == (False, 6)
    assert "were lost before the present lineage began" in given.fault


async def test_checkpoints_of_an_earlier_lineage_stay_stored(accounts, owner_connection):
    """A binding one that is missing is reported; one that was set aside is not."""
    await append(accounts, authorised(KEY, ORIGIN, "1"), stream=lineage_stream(SCHEMA))
    await append(accounts, *[PartnerApproved("ptn_1")] * 4)
    shared, lost = await _checkpoint(accounts, ORIGIN), Checkpoint(ORIGIN, 8, b"\7" * 32)
    begun = authorised(KEY, f"{ORIGIN}b", "2", lost.sign(KEY), 5)
    await append(accounts, begun, stream=lineage_stream(SCHEMA), version=1)
    after = await _checkpoint(accounts, f"{ORIGIN}b")
    for one in (shared, lost, after):
        await _store(owner_connection, one)
    evidence = Evidence([KEY], [_published(one) for one in (shared, after, lost)])
    assert (await judged(owner_connection, evidence)).ok
    await disarm(owner_connection, bare=False)
    await owner_connection.execute("delete from accounts.checkpoints where size = 8")
    assert (await judged(owner_connection, evidence)).ok
    await owner_connection.execute("delete from accounts.checkpoints where size = 5")
    verdict = await judged(owner_connection, evidence)
    assert (verdict.ok, verdict.position) == (False, 5)
    assert verdict.fault.endswith("is missing from the database.")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"previous": None}, "does not name the checkpoint that it follows"),
        ({"previous": "no note"}, "the checkpoint that it follows: not a signed note"),
        ({"previous": Checkpoint(ORIGIN, 8, bytes(32)).sign(OTHER_KEY)}, "signed by no key"),
        ({"shared_size": 9}, "cannot share 9 events with one of 8"),
        ({"shared_size": 3}, "cannot share 3 events where only 2 precede it"),
        ({"shared_size": None}, "cannot share None events"),
        ({"authorisation": ""}, "its authorisation: not a signed note"),
        ({"authorisation": authorised(OTHER_KEY, "x", "").authorisation}, "signed by no key"),
        ({"authorisation": authorised(KEY, ORIGIN, "1").authorisation}, "of another lineage"),
        ({"origin": ORIGIN}, "its origin has been used before"),
        ({"origin": f"{KEY.name}/live/2"}, "its origin is that of another ledger"),
        ({"origin": "x"}, "its origin is that of another ledger"),
    ],
)
async def test_an_unsound_lineage_is_a_fault(accounts, owner_connection, given, said):
    """It needs a signed checkpoint that fits it."""
    await append(accounts, authorised(KEY, ORIGIN, "1"), stream=lineage_stream(SCHEMA))
    await append(accounts, PartnerApproved("ptn_1"))
    previous = Checkpoint(ORIGIN, 8, bytes(32)).sign(KEY)
    values = {"origin": f"{ORIGIN}b", "reason": "2", "previous": previous, "shared_size": 1} | given
    if "authorisation" not in given and values["previous"] != "no note":
        values |= {"authorisation": authorised(KEY, **values).authorisation}
    begun = LineageBegun(**{"authorisation": ""} | values)
    await append(accounts, begun, stream=lineage_stream(SCHEMA), version=1)
    verdict = await judged(owner_connection, NOTHING)
    assert (verdict.ok, verdict.position) == (False, 3)
    assert said in verdict.fault


@pytest.mark.parametrize("state", [b"", b"\xff", b"[" * 5000, b"{}", b'{"class_version":99}'])
async def test_an_unreadable_lineage_is_a_fault(owner_connection, state):
    """Its state must be our JSON; anything else is a fault, not a crash."""
    await disarm(owner_connection, bare=True)
    for topic in ("LineageBegun", "PartnerApproved"):
        await owner_connection.execute("truncate accounts.events, accounts.log")
        await owner_connection.execute(
            "insert into accounts.events values (1, $1, 1, $2, $3)",
            *(lineage_stream(SCHEMA), topic, state),
        )
        await owner_connection.execute("insert into accounts.log values (1, 1, null)")
        await make_hashes_again(
            Scene(owner_connection, None, None, bare=True), 1, forget_checkpoints=False
        )
        verdict = await judged(owner_connection, NOTHING)
        assert (verdict.ok, verdict.position) == (False, 1)
        assert "it cannot be read" in verdict.fault


async def _checkpoint(ledger, origin) -> Checkpoint:
    async with ledger.database.reads.connection() as connection:
        rows = await connection.fetch("select leaf_hash from accounts.log order by position")
    tree = CompactRange()
    tree.extend(row["leaf_hash"] for row in rows)
    return Checkpoint(origin, tree.size, tree.root())


async def _store(connection, checkpoint):
    await connection.execute(
        "insert into accounts.checkpoints (origin, size, note) values ($1, $2, $3)",
        *(checkpoint.origin, checkpoint.size, checkpoint.sign(KEY)),
    )


def _published(checkpoint) -> ReadNote:
    return ReadNote(checkpoint.origin, checkpoint.size, checkpoint.sign(KEY))
