"""Checkpoints of a ledger: signed over what is there, and stored."""

import asyncio

import pytest

from service.evidence.authorisation import authorised
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints import log_tree, signing
from service.evidence.checkpoints.divergence import begin_lineage
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.checkpoints.signing import Checkpoints, KeyMissing, MadeCheckpoint
from service.evidence.note import NoteInvalid, NoteKey, open_note
from service.facts.lineages import lineage_stream
from service.ledger.merkle import CompactRange
from service.ledger.sequencer import Sequencer
from tests.evidence.checkpointing import KEY, root_of
from tests.ledger.samples import CAUSE
from tests.world import settings_for, world_on

NEWER = NoteKey.of_seed("example.com/claim-ledger", b"\x01" * 32)


async def test_the_first_checkpoint_begins_a_lineage(checkpoints, accounts, add, owner):
    """The lineage is an event under the checkpoint, and the root is that of the events."""
    await add(2)
    made = await checkpoints.make()
    async with accounts.transaction() as transaction:
        (recorded,) = await transaction.read(lineage_stream("accounts"))
    reason = "the ledger's first checkpoint"
    assert recorded.event == authorised(KEY, made.checkpoint.origin, reason)
    assert made.checkpoint.origin.startswith("example.com/claim-ledger/accounts/lin_")
    assert (made.checkpoint.size, made.checkpoint.root) == (3, root_of(owner))
    assert (made.is_new, made.is_published) == (True, True)
    assert Checkpoint.open(made.note, [KEY]) == made.checkpoint


async def test_an_empty_ledger_has_one_event_then(checkpoints):
    """There is no checkpoint of size 0: the lineage is the first event."""
    assert (await checkpoints.make()).checkpoint.size == 1


async def test_what_waits_is_numbered_first(checkpoints, accounts, add, owner):
    """A checkpoint covers what was committed before it was asked for."""
    await checkpoints.make()
    await add(3)
    made = await checkpoints.make()
    assert made.checkpoint.size == 4
    assert made.checkpoint.root == root_of(owner)
    assert (await Sequencer(accounts.database).lag()).waiting == 0


async def test_nothing_new(checkpoints, owner):
    """The newest is answered again, and nothing is written: not even a transaction id is drawn."""
    made = await checkpoints.make()
    xids = "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
    before = owner.execute(xids).fetchone()
    assert await checkpoints.make() == made._replace(is_new=False)
    assert owner.execute(xids).fetchone() == before
    assert await checkpoints.all() == [(made.checkpoint, made.note)]
    assert await checkpoints.latest() == (made.checkpoint, made.note)


async def test_before_the_first(checkpoints):
    """There is no latest one."""
    assert await checkpoints.latest() is None
    assert await checkpoints.all() == []


@pytest.mark.parametrize("keys", [[], [NoteKey.parse(KEY.public_text)]])
async def test_without_a_key(accounts, keys, owner):
    """Nothing is appended or signed, and the words say how to get one."""
    with pytest.raises(KeyMissing, match="audit keygen"):
        await Checkpoints(accounts, keys, None).make()
    assert owner.execute("select count(*) from accounts.events").fetchone() == (0,)


async def test_cost_is_of_what_is_new(checkpoints, add, monkeypatch):
    """Only the leaves behind the last checkpoint are read."""
    await add(20)
    await checkpoints.make()
    await add(2)
    read: list[int] = []
    inner = log_tree.extended

    async def counted(tree: CompactRange, leaves: bytes) -> CompactRange:
        read.append(len(leaves) // 32)
        return await inner(tree, leaves)

    monkeypatch.setattr("service.evidence.checkpoints.signing.extended", counted)
    await checkpoints.make()
    assert sum(read) == 2


async def test_a_long_log_goes_in_parts(checkpoints, add, owner, monkeypatch):
    """Each part has a checkpoint of its own, and the last one is the log's."""
    monkeypatch.setattr(log_tree, "EVENTS_MAX", 4)
    await add(9)
    made = await checkpoints.make()
    assert [one.size for one, _ in await checkpoints.all()] == [4, 8, 10]
    assert (made.checkpoint.size, made.checkpoint.root) == (10, root_of(owner))
    assert made.is_new


async def test_many_makers_at_once(accounts, place, add, owner):
    """No duplicate and no error, with the first checkpoint and with later ones."""
    makers = [Checkpoints(accounts, [KEY], place) for _ in range(4)]

    async def busy(maker: Checkpoints) -> list[MadeCheckpoint]:
        return [await maker.make() for _ in range(5)]

    results = await asyncio.gather(*(busy(maker) for maker in makers), add(20))
    stored = await makers[0].all()
    sizes = [one.size for one, _ in stored]
    assert len({one.origin for one, _ in stored}) == 1
    assert sizes == sorted(set(sizes))
    assert sum(made.is_new for result in results[:-1] for made in result) == len(sizes)
    final = await makers[0].make()
    assert final.checkpoint.root == root_of(owner)
    texts = [name for name in await place.names("") if name.endswith(".txt")]
    assert len(texts) == len(await makers[0].all())


async def test_a_newer_key_signs_from_then_on(accounts, place, add):
    """The older one verifies what it signed, its public text suffices, and the origin stays."""
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
    for checkpoint, note in await rotated.all():
        assert Checkpoint.open(note, ring) == checkpoint


async def test_a_key_of_another_name(accounts, place, add):
    """The origin does not change with it."""
    first = await Checkpoints(accounts, [KEY], place).make()
    await add(1)
    other = NoteKey.of_seed("example.net/ledger", bytes(32))
    second = await Checkpoints(accounts, [other, KEY], place).make()
    assert second.checkpoint.origin == first.checkpoint.origin
    assert second.is_new


async def test_it_ends_under_traffic(checkpoints, accounts, add):
    """What is written while it works waits for the next one."""
    stop = asyncio.Event()

    async def write() -> None:
        while not stop.is_set():
            await add(1)
            await Sequencer(accounts.database).step()

    await checkpoints.make()
    writers = [asyncio.create_task(write()) for _ in range(3)]
    try:
        await asyncio.sleep(0.2)
        made = await asyncio.wait_for(checkpoints.make(), 20)
    finally:
        stop.set()
        await asyncio.gather(*writers)
    assert made.is_new
    assert len(await checkpoints.all()) == 2


async def test_a_first_lineage_that_another_began_meanwhile(
    checkpoints, accounts, place, monkeypatch
):
    """Two workers make the first checkpoint at once: no alarm."""
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
    assert len(await checkpoints.all()) == 1


async def test_a_lineage_that_begins_before_the_checkpoint_is_stored(
    checkpoints, accounts, place, add, monkeypatch
):
    """Nothing is stored or published under the origin of before."""
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
    assert [one.size for one, _ in await checkpoints.all()] == [1, 3]


SEEN = """
create table accounts.seen (what text, setting text);
grant insert on accounts.seen to claim_ledger_accounts;
create function accounts.look() returns trigger language plpgsql as $$
begin
    insert into accounts.seen values (tg_table_name, current_setting('synchronous_commit'));
    return new;
end $$;
create trigger look before insert on accounts.events for each row execute function accounts.look();
create trigger look before insert on accounts.checkpoints
for each row execute function accounts.look()
"""


async def test_the_commit_waits_for_the_replica(checkpoints, owner):
    """Whatever the database's setting is, the checkpoint's own transaction has it on."""
    owner.execute(f'alter database "{owner.info.dbname}" set synchronous_commit = off')
    owner.execute(SEEN)
    await checkpoints.make()
    seen = owner.execute("select what, setting from accounts.seen order by what").fetchall()
    assert seen == [("checkpoints", "on"), ("events", "off")]


async def test_metrics(database_url, tmp_path, attack):
    """Any process answers them, from the database."""
    (tmp_path / "published").mkdir()
    given = {
        "CHECKPOINT_KEYS": KEY.private_text,
        "ARCHIVE_URL": (tmp_path / "published").as_uri(),
    }
    settings = settings_for(database_url, tmp_path / "mail", **given)
    async with world_on(settings, tmp_path / "mail", follow=False) as world:
        await world.partner()
        made = await world.service.checkpoints("accounts").make()
        text = (await world.client.get("/metrics")).text
        size = made.checkpoint.size
        assert f'claim_ledger_checkpoint_size{{ledger="accounts"}} {size}.0' in text
        assert 'claim_ledger_checkpoint_age_seconds{ledger="accounts"} ' in text
        assert 'claim_ledger_ledger_forked{ledger="accounts"} 0.0' in text
        assert 'claim_ledger_publication_failures{ledger="live"} 0.0' in text
        assert 'claim_ledger_checkpoint_size{ledger="live"} 0.0' in text
        attack("update accounts.head set size = 0, tree = ''")
        with pytest.raises(LedgerForked):
            await world.service.checkpoints("accounts").make()
        text = (await world.client.get("/metrics")).text
        assert 'claim_ledger_ledger_forked{ledger="accounts"} 1.0' in text
