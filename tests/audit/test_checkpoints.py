"""Checkpoints of a ledger: signed over what is there, stored, published, never beside a past."""

import asyncio
from hashlib import sha256

import pytest

from service.audit import checkpoints as checkpoints_module
from service.audit import log_tree
from service.audit.authorisation import authorised
from service.audit.checkpoint import Checkpoint
from service.audit.checkpoints import Checkpoints, KeyMissing, Made
from service.audit.events import lineage_stream
from service.audit.log_tree import LedgerForked
from service.audit.note import NoteInvalid, NoteKey, open_note
from service.audit.parting import go_on
from service.audit.publication import PublicationUnavailable
from service.audit.published import PublicationEmpty
from service.ledger.merkle import CompactRange
from service.ledger.sequencer import Sequencer
from tests.audit.checkpointing import KEY, directory_at, lose
from tests.ledger.samples import CAUSE
from tests.world import settings_for, world_on

NEWER = NoteKey.of_seed("example.com/claim-ledger", b"\x01" * 32)
LEAVES = """
select sha256('\\x00'::bytea || convert_to(concat_ws(chr(10), 'claim-ledger event v1', l.position,
    l.append_id, e.originator_id, e.originator_version, e.topic, encode(sha256(e.state), 'hex'), ''
), 'UTF8')) from accounts.log l join accounts.events e using (append_id) order by l.position
"""
REMAKE = """
update accounts.log as l set leaf_hash = accounts.leaf_hash(l.position, e.append_id,
    e.originator_id, e.originator_version, e.topic, e.state)
from accounts.events as e where e.append_id = l.append_id
"""


def root_of(owner) -> bytes:
    """Answer the root over the events, made here from the documented record."""
    hashes = [row[0] for row in owner.execute(LEAVES)]
    while len(hashes) > 1:
        pairs = [
            sha256(b"\x01" + hashes[at] + hashes[at + 1]).digest()
            for at in range(0, len(hashes) - 1, 2)
        ]
        hashes = pairs + (hashes[-1:] if len(hashes) % 2 else [])
    return hashes[0]


async def forked(checkpoints: Checkpoints, match: str) -> None:
    """Fail unless a checkpoint is refused, and this is kept for the metrics."""
    stored = await checkpoints.all()
    with pytest.raises(LedgerForked, match=match):
        await checkpoints.make()
    assert (await checkpoints.state()).forked
    assert await checkpoints.all() == stored


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


async def test_what_is_published(checkpoints, place, add, owner):
    """The note, and the leaf hashes since the checkpoint before."""
    first = await checkpoints.make()
    await add(5)
    second = await checkpoints.make()
    top = f"checkpoints/{first.checkpoint.origin}"
    assert await place.names("") == [
        f"{top}/00000000000000000001.leaves",
        f"{top}/00000000000000000001.txt",
        f"{top}/00000000000000000006.leaves",
        f"{top}/00000000000000000006.txt",
    ]
    assert await place.get(f"{top}/00000000000000000006.txt") == second.note.encode()
    leaves = [row[0] for row in owner.execute(LEAVES)]
    assert await place.get(f"{top}/00000000000000000001.leaves") == leaves[0]
    assert await place.get(f"{top}/00000000000000000006.leaves") == b"".join(leaves[1:])


async def test_without_a_publication(accounts):
    """Checkpoints are stored only."""
    alone = Checkpoints(accounts, [KEY], None)
    made = await alone.make()
    assert (made.is_new, made.is_published) == (True, False)
    assert await alone.latest() == (made.checkpoint, made.note)


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

    monkeypatch.setattr("service.audit.checkpoints.extended", counted)
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

    async def busy(maker: Checkpoints) -> list[Made]:
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


async def test_an_altered_event(checkpoints, add, attack):
    """It is found by the leaf that does not hold any more."""
    await checkpoints.make()
    await add(3)
    await checkpoints.number()
    attack("update accounts.events set state = state || ' ' where append_id = 3")
    await forked(checkpoints, "position 3 is not the one that was hashed")


async def test_an_altered_event_with_its_hash(checkpoints, add, attack):
    """The sequencer's tree tells it, which was made of the first hash."""
    await checkpoints.make()
    await add(3)
    await checkpoints.number()
    attack("update accounts.events set state = state || ' ' where append_id = 3", REMAKE)
    await forked(checkpoints, "the head's tree is not that of the 4 events")


async def test_an_altered_event_with_hash_and_head(checkpoints, add, attack):
    """Under a checkpoint already: the next one cannot be made, because its start is signed."""
    await add(3)
    await checkpoints.make()
    await add(1)
    attack(
        "update accounts.events set state = state || ' ' where append_id = 3",
        REMAKE,
        "update accounts.head set tree = null",
        "update accounts.checkpoints set tree = null",
    )
    await forked(checkpoints, "the first 4 events are not those that were signed")


@pytest.mark.parametrize(
    ("statement", "match"),
    [
        ("delete from accounts.log where position = 3", "positions are missing between 2 and 4"),
        ("delete from accounts.events where append_id = 3", "position 3 is not the one"),
        ("update accounts.head set size = 0, tree = ''", "the log ends at 0, a checkpoint has 1"),
        ("update accounts.head set tree = 'x'", "tree is none of 4 events"),
        ("delete from accounts.head", "lost its head"),
        ("update accounts.checkpoints set note = note || 'x'", "in the database was altered"),
        (
            "update accounts.checkpoints set note = replace(note, chr(10) || '1', chr(10) || '2')",
            "in the database was altered",
        ),
    ],
)
async def test_other_attacks(checkpoints, add, attack, statement, match):
    """Each is refused, and nothing is signed over it."""
    await checkpoints.make()
    await add(3)
    await checkpoints.number()
    attack(statement)
    await forked(checkpoints, match)


async def test_a_kept_tree_that_is_wrong_is_made_again(checkpoints, add, attack, owner):
    """It is believed only as far as it makes the signed root."""
    await add(4)
    await checkpoints.make()
    attack("update accounts.checkpoints set tree = sha256('x') || sha256('y')")
    await add(1)
    assert (await checkpoints.make()).checkpoint.root == root_of(owner)


async def test_lost_events(checkpoints, add, attack):
    """A log that is shorter than what was published is told of, and nothing is signed."""
    await checkpoints.make()
    await add(2)
    await checkpoints.make()
    attack(
        "delete from accounts.checkpoints where size = 3",
        "delete from accounts.log where position > 1",
        "update accounts.head set size = 1, tree = (select leaf_hash from accounts.log)",
    )
    await forked(checkpoints, "a checkpoint of 3 events was published, the log has 1")


async def test_lost_and_replaced_events(checkpoints, add, attack, owner):
    """A log that has grown again beyond what was published is told of by the root."""
    await checkpoints.make()
    await add(2)
    await checkpoints.make()
    await lose(owner, attack, 1)
    await add(4)
    await forked(checkpoints, "the first 3 events are not those published")


async def test_a_lost_lineage(checkpoints, add, attack, owner):
    """A log that knows no lineage, where one was published, has lost it."""
    await add(2)
    await checkpoints.make()
    await lose(owner, attack, 2)
    await forked(checkpoints, "the log knows nothing of it")
    assert owner.execute("select count(*) from accounts.events").fetchone() == (2,)


async def test_a_lost_checkpoint_alone(checkpoints, add, attack, owner):
    """Where the log still holds what was published, the note is taken back and work goes on."""
    await checkpoints.make()
    await add(2)
    lost = await checkpoints.make()
    await add(2)
    attack("delete from accounts.checkpoints where size = 3")
    made = await checkpoints.make()
    assert made.checkpoint.size == 5
    assert made.checkpoint.root == root_of(owner)
    assert [note for one, note in await checkpoints.all() if one.size == 3] == [lost.note]


async def test_several_lost_checkpoints(checkpoints, add, attack):
    """Every published note comes back, and not the largest alone."""
    for _ in range(4):
        await add(1)
        await checkpoints.make()
    before = await checkpoints.all()
    attack("delete from accounts.checkpoints where size > 2")
    await add(1)
    await checkpoints.make()
    assert (await checkpoints.all())[:-1] == before


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
    read = checkpoints_module.lineages
    other = Checkpoints(accounts, [KEY], place)

    async def late(ledger):
        found = await read(ledger)
        if not found:
            monkeypatch.setattr(checkpoints_module, "lineages", read)
            await other.make()
        return found

    monkeypatch.setattr(checkpoints_module, "lineages", late)
    assert (await checkpoints.make()).checkpoint.size == 1
    assert len(await checkpoints.all()) == 1


async def test_a_lineage_that_begins_before_the_checkpoint_is_stored(
    checkpoints, accounts, place, add, monkeypatch
):
    """Nothing is stored or published under the origin of before."""
    old = await checkpoints.make()
    await add(1)
    read = checkpoints_module.read_part

    async def late(*arguments):
        part = await read(*arguments)
        monkeypatch.setattr(checkpoints_module, "read_part", read)
        await go_on(Checkpoints(accounts, [KEY], place), "moved", CAUSE, force=True)
        return part

    monkeypatch.setattr(checkpoints_module, "read_part", late)
    made = await checkpoints.make()
    assert made.checkpoint.origin != old.checkpoint.origin
    assert [one.size for one, _ in await checkpoints.all()] == [1, 3]


async def test_another_checkpoint_was_published(place, add, checkpoints):
    """Of the same size under the same origin: two logs sign as one."""
    made = await checkpoints.make()
    await add(1)
    other = Checkpoint(made.checkpoint.origin, 2, bytes(32))
    await place.put(f"checkpoints/{other.origin}/{2:020}.txt", other.sign(KEY).encode())
    await forked(checkpoints, "the first 2 events are not those published")


@pytest.mark.parametrize("content", [b"", b"\xff", b"x\n\n\xe2\x80\x94 x\n"])
async def test_what_is_published_is_no_checkpoint(checkpoints, place, add, content):
    """Nothing is signed before somebody has looked at it."""
    made = await checkpoints.make()
    await place.put(f"checkpoints/{made.checkpoint.origin}/{2:020}.txt", content)
    await add(1)
    with pytest.raises(PublicationUnavailable, match=r"00002\.txt"):
        await checkpoints.make()
    assert [one.size for one, _ in await checkpoints.all()] == [1]


async def test_a_publication_that_is_away(checkpoints, place, add):
    """Nothing is signed, because nobody can tell whether it would contradict what is out there."""
    await checkpoints.make()
    await add(1)
    place.fails = {"names"}
    with pytest.raises(PublicationUnavailable):
        await checkpoints.make()
    assert [one.size for one, _ in await checkpoints.all()] == [1]
    state = await checkpoints.state()
    assert (state.forked, state.publication_failures, state.size) == (False, 1, 1)


@pytest.mark.parametrize("lost", ["put leaves", "put txt"])
async def test_stored_and_not_published(checkpoints, place, add, lost):
    """A crash between the two is mended by the next call, although nothing is new."""
    await checkpoints.make()
    await add(2)
    place.fails = {lost}
    with pytest.raises(PublicationUnavailable):
        await checkpoints.make()
    place.fails = set()
    assert len(await checkpoints.all()) == 2
    again = await checkpoints.make()
    assert (again.checkpoint.size, again.is_new) == (3, False)
    names = [name for name in await place.names("") if "00003." in name]
    assert len(names) == 2
    leaves = await place.get(names[0])
    assert leaves is not None
    assert len(leaves) == 2 * 32


async def test_a_publication_that_comes_later(accounts, place, add):
    """It has to be begun; everything that was stored before is published then."""
    alone = Checkpoints(accounts, [KEY], None)
    for _ in range(3):
        await add(2)
        await alone.make()
    later = Checkpoints(accounts, [KEY], place)
    with pytest.raises(PublicationEmpty):
        await later.make()
    await later.make(begin_publication=True)
    await add(1)
    assert (await later.make()).checkpoint.size == 8
    names = [name.rpartition("/")[2] for name in await place.names("")]
    assert [name[-10:] for name in names] == [
        *("003.leaves", "000003.txt", "005.leaves", "000005.txt", "007.leaves", "000007.txt"),
        *("008.leaves", "000008.txt"),
    ]
    sizes = [len(await place.get(name) or b"") for name in await place.names("") if "lea" in name]
    assert sizes == [3 * 32, 2 * 32, 2 * 32, 32]


async def test_a_place_that_is_another_one(checkpoints, accounts, add, tmp_path):
    """A publication that holds nothing of ours gets nothing: it is counted, and no fork."""
    await checkpoints.make()
    await add(1)
    (tmp_path / "other").mkdir()
    elsewhere = Checkpoints(accounts, [KEY], directory_at(tmp_path / "other"))
    with pytest.raises(PublicationEmpty, match="holds no checkpoint of accounts"):
        await elsewhere.make()
    state = await checkpoints.state()
    assert (state.forked, state.publication_failures, state.size) == (False, 1, 1)
    assert list((tmp_path / "other").iterdir()) == []
    assert (await checkpoints.make()).checkpoint.size == 2


async def test_well_again(checkpoints, place, add, owner):
    """The fork's mark goes once a checkpoint can be made."""
    await checkpoints.make()
    await add(1)
    place.fails = {"get"}
    with pytest.raises(PublicationUnavailable):
        await checkpoints.make()
    owner.execute("update accounts.checkpoint_state set forked = true")
    assert (await checkpoints.state()).forked
    place.fails = set()
    await checkpoints.make()
    state = await checkpoints.state()
    assert (state.forked, state.publication_failures, state.size) == (False, 1, 2)


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
        "PUBLISH_TO": (tmp_path / "published").as_uri(),
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
