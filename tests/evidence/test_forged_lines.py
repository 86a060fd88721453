"""Lines that a ledger's login stores under others' keys count for nothing, and spoil nothing."""

import pytest
from prometheus_client import CollectorRegistry

from service.core.clock import system_clock
from service.evidence import countersigners
from service.evidence.checkpoints.signatures import LINES_MAX, full_note
from service.evidence.countersigners import Countersigners
from service.evidence.countersigning.pace import LOOK_SECONDS
from service.evidence.countersigning.state import countersigning_state
from service.evidence.demands import Demands
from service.evidence.note import SIGNATURES_MAX
from service.evidence.verify.expectations import Evidence
from service.evidence.verify.ledger_verifier import verify_ledger
from service.ledger.sql import Sql
from service.operations.collectors.countersigning import countersigning_collector
from service.operations.gauges import ScrapedGauges
from tests.evidence.checkpointing import KEY, checkpointed
from tests.evidence.witnesses import policy_of

FORGE = Sql(
    "forge",
    "Store lines under a name and an id, older than all others.",
    """
    insert into ledger.checkpoint_signatures
    select $1, $2, $3, $4, one, '2000-01-01' from unnest($5::bytea[]) as one
    """,
)


def known(witnesses):
    """Return who they are, under all of their keys."""
    return Countersigners(key for one in witnesses for key in one.keys)


@pytest.fixture
def forge(checkpoints):
    """Return a function that stores lines of a checkpoint under a key, as the ledger's login."""

    async def store(checkpoint, name, key_id, *signatures):
        database = checkpoints.ledger.database.background
        await database.fetch(FORGE, checkpoint.origin, checkpoint.size, name, key_id, signatures)

    return store


async def test_a_line_that_does_not_hold_is_not_the_witness_s(
    checkpoints, asking, witnesses, accounts, add, time, forge
):
    """It is asked all the same, and its own line is kept beside the others; alerts show both."""
    policy, signers = policy_of(1, *witnesses), known(witnesses)

    async def state():
        return await countersigning_state(checkpoints.ledger, policy, None)

    made = await checkpointed(checkpoints, add, 3)
    for one in witnesses:
        for key in one.keys:
            lines = (count.to_bytes(8, "big") + bytes(64) for count in range(SIGNATURES_MAX))
            await forge(made.checkpoint, *key.which, *lines)
    assert await full_note(accounts.database, made.note, [KEY], signers) == made.note
    before = await state()
    assert before.unwitnessed_since is not None
    assert before.forged == 3 * SIGNATURES_MAX
    assert [await one.step() for one in asking] == [1, 1, 1]
    time.seconds += LOOK_SECONDS
    assert [await one.step() for one in asking] == [0, 0, 0], "it has signed"
    note = await full_note(accounts.database, made.note, [KEY], signers)
    assert set(policy.demand(note)) == {"w0", "w1", "w2"}
    assert (await state()).unwitnessed_since is None
    demands = Demands(policy)
    found = await verify_ledger(accounts.database, Evidence([KEY], demands=demands))
    assert (found.ok, found.countersigned.witnesses) == (True, ["w0", "w1", "w2"])


async def test_lines_of_strangers_take_no_place_from_those_that_hold(
    checkpoints, asking, witnesses, accounts, add, forge
):
    """A note has a hundred at most. Whose keys are not known here are for its reader to judge."""
    made = await checkpointed(checkpoints, add, 1)
    for count in range(SIGNATURES_MAX):
        await forge(made.checkpoint, f"example.net/stranger{count}", b"\0\0\0\1", bytes(64))
    assert [await one.step() for one in asking] == [1, 1, 1]
    policy = policy_of(3, *witnesses)
    note = await full_note(accounts.database, made.note, [KEY], known(witnesses))
    assert set(policy.demand(note)) == {"w0", "w1", "w2"}
    assert note.count("example.net/stranger") == SIGNATURES_MAX - 7


async def test_a_flood_of_lines_is_not_read_whole(checkpoints, asking, witnesses, add, time, forge):
    """What lies behind it is not seen: the alert says so, and the witness is asked again."""
    made = await checkpointed(checkpoints, add, 1)
    policy = policy_of(1, witnesses[0])
    lines = (count.to_bytes(8, "big") + bytes(64) for count in range(LINES_MAX))
    await forge(made.checkpoint, *policy.keys[0].which, *lines)
    for _ in range(2):
        assert await asking[0].step() == 1
        state = await countersigning_state(checkpoints.ledger, policy, None)
        assert state.unwitnessed_since is not None
        time.seconds += LOOK_SECONDS
    gauges = ScrapedGauges(CollectorRegistry())
    await countersigning_collector(checkpoints.ledger, policy, None, system_clock).collect(gauges)
    assert gauges.figures()["countersignatures_forged"] == {"accounts": LINES_MAX}


@pytest.fixture
def verified(monkeypatch):
    """Return the lines that are verified, in their order."""
    seen, holds = [], countersigners._holds  # noqa: SLF001 - counted where its verdicts are kept

    def counted(signer, text, signature):
        seen.append(signature)
        return holds(signer, text, signature)

    monkeypatch.setattr(countersigners, "_holds", counted)
    return seen


async def test_while_a_witness_is_away_little_is_verified(
    checkpoints, asking, witnesses, add, time, owner, verified
):
    """No line of another one can be enough: beyond the newest checkpoints, none is looked at."""
    for _ in range(12):
        await checkpointed(checkpoints, add, 1)
        assert await asking[0].step() == 1
        time.seconds += LOOK_SECONDS
    del verified[:]
    state = await countersigning_state(checkpoints.ledger, policy_of(2, *witnesses[:2]), None)
    (first,) = owner.execute("select min(made_at) from accounts.checkpoints").fetchone()
    assert (state.unwitnessed_since, state.forged, len(verified)) == (first, 0, 8)


async def test_floods_of_several_checkpoints_are_verified_up_to_a_bound(
    checkpoints, witnesses, add, forge, verified
):
    """Of all together: a scrape has seconds."""
    policy = policy_of(1, witnesses[0])
    for _ in range(10):
        made = await checkpointed(checkpoints, add, 1)
        lines = (count.to_bytes(8, "big") + bytes(64) for count in range(200))
        await forge(made.checkpoint, *policy.keys[0].which, *lines)
    state = await countersigning_state(checkpoints.ledger, policy, None)
    assert state.unwitnessed_since is not None
    assert (state.forged, len(verified)) == (LINES_MAX, LINES_MAX)
