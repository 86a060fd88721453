"""Checkpoints of a ledger are signed over its events and stored."""

import asyncio
import re
from datetime import timedelta

import pytest

from service.evidence.authorisation import authorised
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints import log_tree, signing
from service.evidence.checkpoints.divergence import begin_lineage, find_divergence
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.checkpoints.signing import Checkpoints, KeyMissing, MadeCheckpoint
from service.evidence.checkpoints.stored import StoredCheckpoints
from service.evidence.note import NoteInvalid, NoteKey, open_note
from service.facts.lineages import lineage_stream
from service.ledger.merkle import CompactRange
from service.ledger.sequencer import Sequencer
from tests.evidence.checkpointing import KEY, checkpointed, lose, root_of, stored_in
from tests.ledger.samples import CAUSE
from tests.world import PATIENCE_SECONDS, settings_for, world_on

NEWER = NoteKey.of_seed("example.com/claim-ledger", b"\x01" * 32)


async def test_the_first_checkpoint_begins_a_lineage(checkpoints, accounts, add, owner):
    """The lineage is an event under the checkpoint, whose root is that of all events."""
    made = await checkpointed(checkpoints, add, 2)
    async with accounts.transaction() as transaction:
        (recorded,) = await transaction.read(lineage_stream("accounts"))
    reason = "the ledger's first checkpoint"
    assert recorded.event == authorised(KEY, made.checkpoint.origin, reason)
    assert made.checkpoint.origin.startswith("example.com/claim-ledger/accounts/lin_")
    assert (made.checkpoint.size, made.checkpoint.root) == (3, root_of(owner))
    assert (made.is_new, made.is_published) == (True, True)
    assert Checkpoint.open(made.note, [KEY]) == made.checkpoint


async def test_a_checkpoint_of_an_empty_ledger_has_size_1(checkpoints):
    """There is no checkpoint of size 0: the lineage is the first event."""
    assert (await checkpoints.make()).checkpoint.size == 1


async def test_waiting_events_are_numbered_first(checkpoints, accounts, add, owner):
    """A checkpoint covers what was committed before it was requested."""
    await checkpoints.make()
    made = await checkpointed(checkpoints, add, 3)
    assert made.checkpoint.size == 4
    assert made.checkpoint.root == root_of(owner)
    assert (await Sequencer(accounts).lag()).waiting == 0


async def test_without_new_events_the_newest_checkpoint_is_returned(checkpoints, owner):
    """Nothing is written: not even a transaction id is drawn."""
    made = await checkpoints.make()
    xids = "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
    before = owner.execute(xids).fetchone()
    assert await checkpoints.make() == made._replace(is_new=False)
    assert owner.execute(xids).fetchone() == before
    assert await stored_in(checkpoints) == [(made.checkpoint, made.note)]
    assert await checkpoints.latest() == (made.checkpoint, made.note)


async def test_before_the_first_checkpoint_there_is_no_latest(checkpoints):
    """There is no latest checkpoint."""
    assert await checkpoints.latest() is None
    assert await stored_in(checkpoints) == []


@pytest.mark.parametrize("keys", [[], [NoteKey.parse(KEY.public_text)]])
async def test_without_a_key_nothing_is_signed(accounts, keys, owner):
    """Nothing is appended either, and the message says how to get a key."""
    with pytest.raises(KeyMissing, match="audit keygen"):
        await Checkpoints(accounts, keys, None).make()
    assert owner.execute("select count(*) from accounts.events").fetchone() == (0,)


async def test_the_cost_depends_on_new_events_only(checkpoints, add, monkeypatch):
    """Only the leaves after the last checkpoint are read."""
    await checkpointed(checkpoints, add, 20)
    await add(2)
    read: list[int] = []
    inner = log_tree.extended

    async def counted(tree: CompactRange, leaves: bytes) -> CompactRange:
        read.append(len(leaves) // 32)
        return await inner(tree, leaves)

    monkeypatch.setattr("service.evidence.checkpoints.signing.extended", counted)
    await checkpoints.make()
    assert sum(read) == 2


async def test_a_long_log_is_signed_in_parts(checkpoints, add, owner, monkeypatch):
    """Each part has its own checkpoint, and the last one covers the log."""
    monkeypatch.setattr(log_tree, "EVENTS_MAX", 4)
    made = await checkpointed(checkpoints, add, 9)
    assert [one.size for one, _ in await stored_in(checkpoints)] == [4, 8, 10]
    assert (made.checkpoint.size, made.checkpoint.root) == (10, root_of(owner))
    assert made.is_new


async def test_concurrent_checkpoints_agree(accounts, place, add, owner):
    """There is no duplicate and no error, for the first checkpoint and for later ones."""
    makers = [Checkpoints(accounts, [KEY], place) for _ in range(4)]

    async def busy(maker: Checkpoints) -> list[MadeCheckpoint]:
        return [await maker.make() for _ in range(5)]

    results = await asyncio.gather(*(busy(maker) for maker in makers), add(20))
    stored = await stored_in(makers[0])
    sizes = [one.size for one, _ in stored]
    assert len({one.origin for one, _ in stored}) == 1
    assert sizes == sorted(set(sizes))
    assert sum(made.is_new for result in results[:-1] for made in result) == len(sizes)
    final = await makers[0].make()
    assert final.checkpoint.root == root_of(owner)
    texts = [name for name in await place.names("") if name.endswith(".txt")]
    assert len(texts) == len(await stored_in(makers[0]))


async def test_a_newer_key_signs_from_then_on(accounts, place, add):
    """The older public key still verifies what it signed, and the origin stays."""
    first = await Checkpoints(accounts, [KEY], place).make()
    await add(1)
    with pytest.raises(KeyMissing, match="the last checkpoint's key was replaced"):
        await Checkpoints(accounts, [NEWER], place).make()
    ring = [NEWER, NoteKey.parse(KEY.public_text)]
    rotated = Checkpoints(accounts, ring, place)
    second = await rotated.make()
    assert second.checkpoint.origin == first.checkpoint.origin
    assert open_note(second.note, [NEWER])
    with pytest.raises(NoteInvalid):
        open_note(second.note, [KEY])
    for checkpoint, note in await stored_in(rotated):
        assert Checkpoint.open(note, ring) == checkpoint


async def test_a_renamed_key_keeps_the_origin(accounts, place, add):
    """The origin does not change with the key's name."""
    first = await Checkpoints(accounts, [KEY], place).make()
    await add(1)
    other = NoteKey.of_seed("example.net/ledger", bytes(32))
    second = await Checkpoints(accounts, [other, KEY], place).make()
    assert second.checkpoint.origin == first.checkpoint.origin
    assert second.is_new


async def test_a_checkpoint_ends_under_traffic(checkpoints, accounts, add):
    """What is written meanwhile is left to the next one."""
    stop = asyncio.Event()

    async def write() -> None:
        while not stop.is_set():
            await add(1)
            await Sequencer(accounts).step()

    await checkpoints.make()
    writers = [asyncio.create_task(write()) for _ in range(3)]
    try:
        await add(1)
        made = await asyncio.wait_for(checkpoints.make(), PATIENCE_SECONDS)
    finally:
        stop.set()
        await asyncio.gather(*writers)
    assert made.is_new
    assert len(await stored_in(checkpoints)) == 2


async def test_concurrent_first_checkpoints_raise_no_alarm(
    checkpoints, accounts, place, monkeypatch
):
    """Two workers make the first checkpoint at once."""
    read = signing.lineages
    other = Checkpoints(accounts, [KEY], place)

    async def late(ledger):
        found = await read(ledger)
        if not found:
            monkeypatch.setattr(signing, "lineages", read)
            await other.make()
        return found

    monkeypatch.setattr(signing, "lineages", late)
    assert (await checkpoints.make()).checkpoint.size == 1
    assert len(await stored_in(checkpoints)) == 1


async def test_a_lineage_begun_meanwhile_stops_the_checkpoint(
    checkpoints, accounts, place, add, monkeypatch
):
    """Nothing is stored or published under the previous origin."""
    old = await checkpoints.make()
    await add(1)
    read = signing.read_part

    async def late(*arguments):
        part = await read(*arguments)
        monkeypatch.setattr(signing, "read_part", read)
        await begin_lineage(Checkpoints(accounts, [KEY], place), "moved", CAUSE, force=True)
        return part

    monkeypatch.setattr(signing, "read_part", late)
    made = await checkpoints.make()
    assert made.checkpoint.origin != old.checkpoint.origin
    assert [one.size for one, _ in await stored_in(checkpoints)] == [1, 3]


async def test_nothing_is_stored_beside_the_log_of_another_database(
    checkpoints, add, attack, owner, monkeypatch
):
    """A replica that lagged takes over after the log was read: the new log is signed instead."""
    await checkpoints.make()
    await add(2)
    read = signing.read_part

    async def late(*arguments):
        part = await read(*arguments)
        monkeypatch.setattr(signing, "read_part", read)
        # No checkpoint was stored beyond the first event.
        await lose(
            owner, lambda *cuts: attack(*(one for one in cuts if "checkpoints" not in one)), 1
        )
        await add(2)
        await Sequencer(checkpoints.ledger).number_committed()
        return part

    monkeypatch.setattr(signing, "read_part", late)
    assert (await checkpoints.make()).checkpoint.size == 3
    found = await find_divergence(checkpoints)
    assert (found.checkpoint.size, found.shared_size) == (3, 3)


async def test_checkpoint_metrics_come_from_the_database(database_url, tmp_path, attack):
    """Any process can report them."""
    (tmp_path / "published").mkdir()
    given = {
        "CHECKPOINT_KEYS": KEY.private_text,
        "ARCHIVE_URL": (tmp_path / "published").as_uri(),
    }
    settings = settings_for(database_url, tmp_path / "mail", **given)
    async with world_on(settings, tmp_path / "mail", follow=False) as world:
        await world.partner()
        made = await world.service.checkpoints("accounts").make()
        text = await world.scrape()
        size = made.checkpoint.size
        assert f'claim_ledger_checkpoint_size{{ledger="accounts"}} {size}.0' in text
        assert 'claim_ledger_checkpoint_age_seconds{ledger="accounts"} ' in text
        assert 'claim_ledger_ledger_forked{ledger="accounts"} 0.0' in text
        assert 'claim_ledger_publication_failures{ledger="live"} 0.0' in text
        assert 'claim_ledger_checkpoint_size{ledger="live"} 0.0' in text
        attack("update accounts.head set size = 0, tree = ''")
        with pytest.raises(LedgerForked):
            await world.service.checkpoints("accounts").make()
        text = await world.scrape()
        assert 'claim_ledger_ledger_forked{ledger="accounts"} 1.0' in text


async def test_metrics_show_a_checkpoint_dated_ahead(database_url, tmp_path):
    """Its date says nothing about its age, which is that of the first event it does not cover."""
    settings = settings_for(database_url, tmp_path / "mail", CHECKPOINT_KEYS=KEY.private_text)
    async with world_on(settings, tmp_path / "mail", follow=False) as world:
        await world.partner()
        checkpoints = world.service.checkpoints("accounts")
        right = checkpoints.ledger.clock
        checkpoints.ledger.clock = lambda: right() + timedelta(days=30)
        await checkpoints.make()
        checkpoints.ledger.clock = right
        text = await world.scrape()
        ahead = re.search(r'claim_ledger_checkpoint_ahead_seconds\{ledger="accounts"\} (\S+)', text)
        assert float(ahead[1]) == pytest.approx(30 * 86_400, abs=PATIENCE_SECONDS)
        assert 'claim_ledger_checkpoint_ahead_seconds{ledger="live"} 0.0' in text
        assert 'claim_ledger_checkpoint_age_seconds{ledger="accounts"} 0.0' in text
        checkpoints.ledger.clock = lambda: right() - timedelta(hours=2)
        await world.partner()
        await Sequencer(checkpoints.ledger).number_committed()
        checkpoints.ledger.clock = right
        text = await world.scrape()
        age = re.search(r'claim_ledger_checkpoint_age_seconds\{ledger="accounts"\} (\S+)', text)
        assert float(age[1]) == pytest.approx(2 * 3600, abs=PATIENCE_SECONDS)


async def test_the_note_of_another_checkpoint_is_a_fault(checkpoints, add, attack):
    """A row behind the last one, with its note, does not keep signing busy for ever."""
    made = await checkpointed(checkpoints, add, 2)
    (origin, size, _), stored = made.checkpoint, StoredCheckpoints(checkpoints.ledger, [KEY])
    assert stored.opened(origin, size, made.note) == made.checkpoint
    for other in ((f"{origin}0", size), (origin, size + 1)):
        with pytest.raises(LedgerForked, match="the note of another one"):
            stored.opened(*other, made.note)
    attack(
        "insert into accounts.checkpoints (origin, size, note, tree, made_at)"
        " select origin, 999, note, tree, made_at from accounts.checkpoints"
    )
    await add(1)
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(LedgerForked, match="the note of another one"):
            await checkpoints.make()
    assert (await checkpoints.state()).forked
