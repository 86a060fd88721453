"""A log that has less than was published, on a server that says that it is a standby.

A log that was cut back, with its checkpoints, is what a standby that is behind has. A real one is
in `tests/faults/test_replica.py`.
"""

from inspect import unwrap

import pytest

from service.cli.audit.history import history
from service.cli.audit.verdict_metrics import write_metrics
from service.cli.audit.verify import answer_of
from service.cli.target import Target
from service.cli.verdict import Findings, Unjudged
from service.evidence.checkpoints import signing
from service.evidence.checkpoints.behind import Behind
from service.evidence.checkpoints.divergence import begin_lineage
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.verify import ledger_verifier
from service.evidence.verify.expectations import published_evidence
from service.evidence.verify.ledger_verifier import verify_ledger
from service.ledger.events import Cause
from service.ledger.sql import Sql
from tests.evidence.checkpointing import ALTER, KEY, REHASH, checkpointed, lose
from tests.world import STAFF

STORE = "insert into accounts.checkpoints (origin, size, note, made_at) values (%s, %s, %s, now())"
CAUSE = Cause("staff:test", "req_test")


@pytest.fixture
def standby(monkeypatch):
    """Return a function after which the server says that it is a standby."""

    async def is_standby(_ledger):
        return True

    def become():
        server = Sql("a standby", "", "select 'on' as in_hot_standby")
        monkeypatch.setattr(ledger_verifier, "_STANDBY", server)
        monkeypatch.setattr(signing, "is_standby", is_standby)

    return become


@pytest.fixture
def verdict(accounts, place):
    """Return a function that verifies the ledger, and all that was published of it."""

    async def of(given=None):
        evidence = await published_evidence(place, "accounts", [KEY], given)
        return await verify_ledger(accounts.database, evidence)

    return of


async def test_what_a_standby_lacks_is_neither_held_nor_lost(
    checkpoints, add, owner, attack, standby, verdict
):
    """What it has is compared with the newest published one that is there; a primary lost it."""
    (reached, *_), (beyond, *_) = [await checkpointed(checkpoints, add, 2) for _ in range(2)]
    await lose(owner, attack, 4)
    assert (await verdict()).fault.startswith("The log ends at position 4.")
    standby()
    found = await verdict()
    assert (found.fault, found.size, found.behind, found.checkpoints) == (None, 4, 5, 1)
    answer = answer_of([found])
    assert (type(answer), answer["ok"], answer["behind"]) == (Unjudged, None, 5)
    assert "has not replayed what was published of accounts (5 events)" in answer.verdict
    with pytest.raises(Behind) as late:
        await checkpoints.newest_published()
    assert (late.value.size, late.value.reached) == (5, reached)
    assert (await verdict(beyond)).behind == 5


async def test_events_come_before_the_checkpoint_that_covers_them(
    checkpoints, add, attack, standby, verdict
):
    """A standby may have its events, and not its row. Their root is compared all the same."""
    (reached, *_), (beyond, *_) = [await checkpointed(checkpoints, add, 2) for _ in range(2)]
    assert beyond.size == 5
    attack("delete from accounts.checkpoints where size = 5")
    assert (await verdict()).fault.endswith("is missing from the database.")
    standby()
    assert ((await verdict()).fault, (await verdict()).behind) == (None, beyond.size)
    with pytest.raises(Behind) as late:
        await checkpoints.newest_published()
    assert late.value.reached == reached
    attack(ALTER.format(beyond.size), REHASH.format(beyond.size))
    found = await verdict()
    assert (found.ok, found.position, found.behind) == (False, beyond.size, beyond.size)
    assert isinstance(answer_of([found]), Findings)


async def test_a_lineage_that_a_standby_does_not_know_yet(
    checkpoints, add, owner, attack, standby, verdict
):
    """It was begun on the primary, and is not what somebody took from the log."""
    reached, *_ = await checkpointed(checkpoints, add, 2)
    begun = await begin_lineage(checkpoints, "a trial", CAUSE, force=True)
    await lose(owner, attack, reached.size)
    with pytest.raises(LedgerForked, match="and the log knows nothing of it"):
        await checkpoints.newest_published()
    standby()
    found = await verdict()
    assert (found.fault, found.behind) == (None, begun.checkpoint.size)
    with pytest.raises(Behind) as late:
        await checkpoints.newest_published()
    assert (late.value.size, late.value.reached) == (begun.checkpoint.size, reached)


async def test_a_loss_that_a_standby_shows_by_itself_is_one(
    checkpoints, add, owner, attack, standby, verdict
):
    """A checkpoint is stored after its events, and after those before it: neither is on its way."""
    for _ in range(3):
        made = await checkpointed(checkpoints, add, 1)
    standby()
    assert await checkpoints.newest_published() == made.checkpoint
    assert (await verdict()).behind is None
    attack("delete from accounts.checkpoints where size = 3")
    assert (await verdict()).fault.endswith("3 events is missing from the database.")
    await lose(owner, attack, 2)
    owner.execute(STORE, [*made.checkpoint[:2], made.note])
    found = await verdict()
    assert (found.ok, found.position) == (False, 3)


async def test_no_history_is_whole_on_a_standby_that_is_behind(
    service, checkpoints, place, add, owner, attack, standby
):
    """What it has is shown; that it has nothing does not say that there was nothing."""
    kept = await service.partners.add("A partner", "a@example.com", STAFF)
    await checkpointed(checkpoints, add, 1, 2)
    await lose(owner, attack, 4)
    service.archive = place
    with_keys = service.settings.values | {"CHECKPOINT_KEYS": (KEY,)}
    service.settings = type(service.settings)(with_keys)
    standby()
    assert history.callback is not None
    for subject, count in ((kept, 1), ("ptr_none", 0)):
        answer = await unwrap(history.callback)(
            Target(service, STAFF), subject, "accounts", 10, None, force=False
        )
        assert (type(answer), answer["behind"]) == (Unjudged, [{"ledger": "accounts", "size": 5}])
        assert len(list(answer["events"])) == count


async def test_a_standby_that_stays_behind_becomes_an_old_verification(
    service, checkpoints, add, owner, attack, standby, verdict, tmp_path
):
    """The file keeps what it said, so that neither an earlier finding nor the time is lost."""
    await checkpointed(checkpoints, add, 2, 2)
    sound, path, now = await verdict(), tmp_path / "verified.prom", service.clock()
    await lose(owner, attack, 3)
    standby()
    late = await verdict()
    write_metrics(path, [late], now)
    assert 'verified_at_seconds{ledger="accounts"} 0\n' in path.read_text()
    assert "verification_failed{" not in path.read_text()
    write_metrics(path, [sound], now)
    before = path.read_text()
    write_metrics(path, [late], now.replace(year=now.year + 1))
    assert path.read_text() == before


async def test_what_a_later_lineage_s_checkpoint_followed_is_lost(
    checkpoints, add, attack, standby, verdict
):
    """The last one of a lineage was stored before the first one of the next."""
    await checkpointed(checkpoints, add, 2)
    await begin_lineage(checkpoints, "a trial", CAUSE, force=True)
    standby()
    assert ((await verdict()).fault, (await verdict()).behind) == (None, None)
    attack("delete from accounts.checkpoints where size = 3")
    assert (await verdict()).fault.endswith("is missing from the database.")
