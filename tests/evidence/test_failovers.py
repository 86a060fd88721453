"""Checkpoints and lineages while one database takes another's place.

`lose` puts an earlier state of the log in place of the present one, under running processes, as a
failover to a replica that lagged does.
"""

import asyncio
from uuid import uuid4

import pytest

from service.archive.port import ArchiveUnavailable
from service.evidence.checkpoints import log_tree
from service.evidence.checkpoints.divergence import LineageRefused, begin_lineage
from service.evidence.checkpoints.lineage import lineages
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.checkpoints.names import CLOSED, link_name
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.proofs.serving import ConsistencyProofs
from service.evidence.tree.keeper import TreeNodes
from service.evidence.verify.expectations import published_evidence
from service.evidence.verify.ledger_verifier import verify_ledger
from service.ledger.events import Cause
from tests.evidence.checkpointing import KEY, Away, checkpointed, forked, lose
from tests.ledger.appending import approved

CAUSE = Cause("staff:test", "req_test")
STORE = "insert into accounts.checkpoints (origin, size, note, made_at) values (%s, %s, %s, now())"


class Slow(Away):
    """An archive that keeps a process waiting before it writes anything."""

    def __init__(self, inner):
        super().__init__(inner)
        self.is_asked, self.may_go_on = asyncio.Event(), asyncio.Event()

    async def put(self, name, content):
        """Put, as soon as it may."""
        self.is_asked.set()
        await self.may_go_on.wait()
        return await super().put(name, content)


class TakenOver(Away):
    """An archive that is asked to close an origin while another database takes over."""

    def __init__(self, inner, take_over):
        super().__init__(inner)
        self._take_over = take_over

    async def put(self, name, content):
        """Put; then another database answers."""
        found = await super().put(name, content)
        if content == CLOSED:
            await self._take_over()
        return found


async def verdict_on(accounts, place):
    """Return the verdict on the ledger and all that was published of it."""
    return await verify_ledger(
        accounts.database, await published_evidence(place, "accounts", [KEY], None)
    )


async def sizes_of(place, origin):
    """Return the sizes of an origin's published checkpoints."""
    names = await place.names(f"checkpoints/{origin}/")
    return [int(name[-24:-4]) for name in names if name.endswith(".txt")]


async def stalled(accounts, place):
    """Let a process sign and store a checkpoint; return its archive, and what is under way."""
    slow = Slow(place)
    making = asyncio.create_task(Checkpoints(accounts, [KEY], slow).make())
    await slow.is_asked.wait()
    return slow, making


@pytest.fixture
async def failed_over(accounts, checkpoints, place, add, owner, attack):
    """Return the first checkpoint, and an old process that has stored a second and not published.

    The database has lost what the second covers, and has four events in its place.
    """
    first = await checkpoints.make()
    await add(2)
    slow, making = await stalled(accounts, place)
    await lose(owner, attack, 1)
    await add(4)
    return first, slow, making


async def test_a_late_publication_contradicts_nothing(accounts, checkpoints, place, failed_over):
    """What was stored in the old database is not published beside what the new one published."""
    first, slow, making = failed_over
    made = await checkpoints.make()
    slow.may_go_on.set()
    assert await making == made._replace(is_new=False)
    assert await sizes_of(place, first.checkpoint.origin) == [1, 5]
    assert (await verdict_on(accounts, place)).fault is None


async def test_a_publication_that_came_first_is_kept_to(accounts, checkpoints, place, failed_over):
    """The new database finds the checkpoint that the old one stored when it publishes its own."""
    first, slow, making = failed_over
    other, anew = await stalled(accounts, place)
    slow.may_go_on.set()
    with pytest.raises(LedgerForked):
        await making
    other.may_go_on.set()
    with pytest.raises(LedgerForked):
        await anew
    assert await sizes_of(place, first.checkpoint.origin) == [1, 3]
    await begin_lineage(checkpoints, "a failover", CAUSE, force=False)
    verdict = await verdict_on(accounts, place)
    assert (verdict.fault, verdict.set_aside_size) == (None, 3)


async def test_strangers_get_no_proof_of_what_was_lost(accounts, checkpoints, owner, attack):
    """The log's nodes lead to another root, but nobody has altered them."""

    async def add():
        async with accounts.transaction() as transaction:
            await transaction.append(approved(uuid4(), 0, count=300))

    first = await checkpoints.make()
    await add()
    lost, note, *_ = await checkpoints.make()
    await lose(owner, attack, 1)
    await add()
    now = await begin_lineage(checkpoints, "a failover", CAUSE, force=False)
    # The new database may have stored one of this size, too, before it could not publish it.
    owner.execute(STORE, (lost.origin, lost.size, note))
    assert await TreeNodes(accounts).slice() == 1
    proofs = ConsistencyProofs(lambda _ledger: checkpoints, lambda _network: None)
    old, new = first.checkpoint.size, now.checkpoint.size
    for sizes in ((old, lost.size), (lost.size, new)):
        assert await proofs.make("accounts", *sizes) is None
    assert await proofs.make("accounts", old, new) is not None
    assert owner.execute("select count(*) from accounts.tree_nodes").fetchone() == (1,)


async def test_a_linked_checkpoint_is_published_by_whoever_finds_it(
    accounts, checkpoints, place, add, owner, attack
):
    """The process that linked it has died, and a failover lost what it covers."""
    first = await checkpoints.make()
    await add(2)
    place.fails = {"put txt"}
    with pytest.raises(ArchiveUnavailable):
        await Checkpoints(accounts, [KEY], place).make()
    place.fails = set()
    await lose(owner, attack, 1)
    await forked(checkpoints, "a checkpoint of 3 events was published, the log has 1")
    assert await sizes_of(place, first.checkpoint.origin) == [1, 3]


async def test_nothing_is_published_of_a_lineage_that_another_one_follows(
    accounts, checkpoints, place, add, owner, attack
):
    """Its last checkpoint, which the new one names, stays the last."""
    first = await checkpoints.make()
    await checkpointed(checkpoints, add, 2)
    await add(2)
    slow, making = await stalled(accounts, place)
    await lose(owner, attack, 2)
    made = await begin_lineage(checkpoints, "a failover", CAUSE, force=False)
    slow.may_go_on.set()
    assert await making == made._replace(is_new=False)
    assert await sizes_of(place, first.checkpoint.origin) == [1, 3]
    verdict = await verdict_on(accounts, place)
    assert (verdict.fault, verdict.set_aside_size) == (None, 3)


async def test_a_lineage_is_not_begun_in_another_database_than_was_compared(
    accounts, checkpoints, place, add, owner, attack
):
    """It would say that it shares events which this one does not have."""
    for count in (2, 3, 3):
        await add(count)
        await checkpoints.make()
    await lose(owner, attack, 7)
    during = Checkpoints(accounts, [KEY], TakenOver(place, lambda: lose(owner, attack, 4)))
    with pytest.raises(LineageRefused, match="another database took over"):
        await begin_lineage(during, "a failover", CAUSE, force=False)
    assert len(await lineages(accounts)) == 1
    with pytest.raises(LedgerForked):
        await checkpoints.make()
    await begin_lineage(checkpoints, "two failovers", CAUSE, force=False)
    assert (await lineages(accounts))[-1].shared_size == 4
    assert (await verdict_on(accounts, place)).fault is None


async def test_a_lineage_follows_what_was_published_last(
    accounts, checkpoints, add, owner, attack, monkeypatch
):
    """Even while it was about to begin: it would disown what it does not name."""
    await checkpoints.make()
    await add(2)
    made = (await checkpoints.make()).checkpoint
    await lose(owner, attack, 2)
    restore = checkpoints.restore_published

    async def restore_late(size):
        newer = made._replace(size=made.size + 1)
        assert await checkpoints.published.put(newer, newer.sign(KEY), b"", made.size)
        await restore(size)

    monkeypatch.setattr(checkpoints, "restore_published", restore_late)
    with pytest.raises(LineageRefused, match="another checkpoint was published meanwhile"):
        await begin_lineage(checkpoints, "a failover", CAUSE, force=False)
    assert len(await lineages(accounts)) == 1


async def test_a_lineage_that_was_about_to_begin_is_begun_by_the_next_call(
    accounts, checkpoints, place, add
):
    """Nothing can be published of the one before any more, although nothing is lost."""
    made = await checkpoints.make()
    await place.put(link_name(made.checkpoint.origin, 1), CLOSED)
    await add(1)
    with pytest.raises(LedgerForked, match="audit lineage"):
        await checkpoints.make()
    anew = await begin_lineage(checkpoints, "a crash", CAUSE, force=False)
    assert anew.checkpoint.size == 3
    assert (await verdict_on(accounts, place)).fault is None


async def test_a_lineage_whose_beginning_was_lost_needs_no_force(
    accounts, checkpoints, place, add, owner, attack, monkeypatch
):
    """A long log's first checkpoint can end before the event that begins its lineage."""
    await checkpointed(checkpoints, add, 3)
    await lose(owner, attack, 3)
    monkeypatch.setattr(log_tree, "EVENTS_MAX", 2)
    place.fails = {f"put {2:020}.next"}
    with pytest.raises(ArchiveUnavailable):
        await begin_lineage(checkpoints, "a failover", CAUSE, force=False)
    place.fails = set()
    await lose(owner, attack, 3)
    with pytest.raises(LedgerForked, match="knows nothing of it"):
        await checkpoints.make()
    await begin_lineage(checkpoints, "another failover", CAUSE, force=False)
    verdict = await verdict_on(accounts, place)
    assert (verdict.fault, verdict.lineages) == (None, 2)
