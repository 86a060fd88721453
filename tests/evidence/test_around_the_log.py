"""`audit verify` looks at what surrounds a log that holds: what is published, what protects it."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from service.archive.directory import DirectoryArchive
from service.core.forked_processes import Spares
from service.evidence.checkpoints.names import streams_name
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.note import NoteKey
from service.evidence.streams_note import StreamsNote, stream_leaf
from service.evidence.verify import confirm, ledger_verifier
from service.evidence.verify.checkpoint_dates import misdated
from service.evidence.verify.expectations import published_evidence
from service.evidence.verify.ledger_verifier import verify_ledger
from service.evidence.verify.public_ids import are_kept
from tests.databases import cloned
from tests.evidence.checkpointing import KEY, adding, checkpointed, directory_at, stored_in
from tests.ledger.merkle_tree import MerkleTree
from tests.ledger.raw_events import RawEvent, write_foreign
from tests.tables import every_row
from tests.world import STAFF, service_on, settings_for

OTHER = NoteKey.of_seed("example.com/claim-ledger", bytes(31) + b"1")
FIRSTS = """
select e.originator_id, l.position from accounts.events as e
join accounts.log as l using (append_id)
where e.originator_version = 1 and l.position <= %s order by e.originator_id
"""
OTHER_REFUSAL = """
create or replace function accounts.refuse_change() returns trigger language plpgsql as
$$begin return null; end$$
"""
OTHER_HASH = """
create or replace function accounts.leaf_hash(
    log_position bigint, append_id bigint, originator_id uuid, originator_version bigint,
    topic text, state bytea
) returns bytea language sql stable return sha256(state)
"""
BETTER_MATCH = """
create function accounts.leaf_hash(
    log_position bigint, append_id bigint, originator_id uuid, originator_version bigint,
    topic text, state bytea, more text default ''
) returns bytea language sql return state
"""
NARROWER = """
create or replace trigger append_only before truncate on accounts.log
for each statement execute function accounts.refuse_change();
alter table accounts.log enable always trigger append_only
"""
DROPPING = """
create function public.f() returns trigger language plpgsql as $$begin return null; end$$;
create trigger z before insert on accounts.events for each row execute function public.f()
"""
VIEW = """
alter table accounts.partners rename to hidden;
create view accounts.partners as select * from accounts.hidden
"""
# What is of another schema, whatever that is called: `ledger` is the name in the migrations' texts.
OTHERS_TRIGGER = """
create schema ledger;
create function ledger.refuse_change() returns trigger language plpgsql as
$$begin return null; end$$;
drop trigger append_only on accounts.log;
create trigger append_only before update or delete or truncate on accounts.log
for each statement execute function ledger.refuse_change();
alter table accounts.log enable always trigger append_only
"""
OTHERS_FUNCTION = """
create schema ledger;
create table ledger.set_aside (like accounts.set_aside including all);
do $$ begin
execute replace(
    pg_get_functiondef('accounts.set_aside_events'::regproc), 'accounts.set_aside ',
    'ledger.set_aside '
);
end $$
"""
OTHERS_KEY = """
create schema ledger;
create table ledger.checkpoints (like accounts.checkpoints including all);
alter table accounts.checkpoint_signatures
drop constraint checkpoint_signatures_origin_size_fkey,
add constraint checkpoint_signatures_origin_size_fkey
foreign key (origin, size) references ledger.checkpoints (origin, size)
"""
ALTERED = (
    (
        "alter table accounts.log disable trigger append_only",
        "The trigger append_only of accounts.log is gone",
    ),
    (
        "drop trigger append_only on accounts.log",
        "The trigger append_only of accounts.log is gone",
    ),
    (
        NARROWER,
        "The trigger append_only of accounts.log is gone",
    ),
    (
        DROPPING,
        "accounts.events has this trigger, which no migration made: CREATE TRIGGER z",
    ),
    (
        "alter table accounts.events drop constraint events_append_id_key cascade",
        "The key (append_id) of accounts.events is gone",
    ),
    (
        "alter table accounts.events drop constraint events_originator_version_check",
        "accounts.events lacks this constraint, which migrations made: events_originator_version",
    ),
    (OTHER_HASH, "The function accounts.leaf_hash is not the one"),
    (BETTER_MATCH, "The function accounts.leaf_hash is not the one"),
    (OTHER_REFUSAL, "The function accounts.refuse_change is not the one"),
    (
        "alter table accounts.events enable row level security",
        "accounts.events is a table with row security, where migrations made a table.",
    ),
    (
        "create policy p on accounts.partners using (true)",
        "accounts.partners has this policy, which no migration made: p",
    ),
    (
        VIEW,
        "accounts.partners is a view, where migrations made a table.",
    ),
    ("drop table accounts.parked", "accounts.parked is gone, where migrations made a table."),
    ("create table accounts.more (id int)", "accounts.more is a table that no migration made."),
    (
        "create table public.more () inherits (accounts.api_keys)",
        "accounts.api_keys has this inheritance, which no migration made: public.more of",
    ),
    (
        "create rule r as on insert to accounts.pending do instead nothing",
        "accounts.pending has this rule, which no migration made:",
    ),
    (
        "alter table accounts.api_keys alter column revoked_at set default now()",
        "accounts.api_keys lacks this column, which migrations made: revoked_at",
    ),
    (
        "alter table accounts.events alter column append_id set cache 20",
        "accounts.events_append_id_seq lacks this sequence, which migrations made:",
    ),
    (
        "create unique index i on accounts.partners (stream_id, status)",
        "accounts.partners has this index, which no migration made: CREATE UNIQUE INDEX i",
    ),
    (
        "create operator accounts.= (leftarg = text, rightarg = text, function = textne)",
        "accounts.= has this operator, which no migration made:",
    ),
    (OTHERS_TRIGGER, "The trigger append_only of accounts.log is gone, off or replaced"),
    (OTHERS_FUNCTION, "The function accounts.set_aside_events is not the one"),
    (OTHERS_KEY, "accounts.checkpoint_signatures lacks this constraint, which migrations made:"),
    (
        "insert into accounts.tree_nodes values (7, 9223372036854775807, sha256(''))",
        "The node of level 7",
    ),
    (
        "update public.alembic_version set version_num = '9999'",
        "The schema of accounts is of revision 9999, and that of this release is",
    ),
    (
        "revoke select on public.alembic_version from claim_ledger_accounts",
        "The schema of accounts is of an unknown revision",
    ),
)


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Path:
    """Return a directory for what is published of the log that tests clone."""
    return tmp_path_factory.mktemp("around") / "published"


@pytest.fixture(scope="module")
def template(postgres_url, template, published) -> Iterator[str]:
    """Return the name of a database whose log has two checkpoints, to be cloned."""
    with cloned(postgres_url, template) as url:
        asyncio.run(_signed_twice(url, published))
        yield url.rpartition("/")[2]


async def _signed_twice(url: str, published: Path) -> None:
    async with service_on(settings_for(url, published.parent)) as service:
        checkpoints = Checkpoints(service.accounts, [KEY], directory_at(published))
        for _ in range(2):
            await checkpointed(checkpoints, adding(service), 2)


@pytest.fixture
def place(tmp_path, published) -> DirectoryArchive:
    """Return a directory of this test's own with what was published."""
    shutil.copytree(published, tmp_path / "published")
    return directory_at(tmp_path / "published")


@pytest.fixture
def verified(accounts, place):
    """Return a function that verifies a published log."""

    async def verify(event_keys=None):
        evidence = await published_evidence(place, "accounts", [KEY], None)
        return await verify_ledger(accounts.database, evidence, event_keys=event_keys)

    return verify


async def test_a_log_that_was_signed_holds_with_all_around_it(verified):
    """So what is said of the same log, once something has been altered, is because of that."""
    assert (await verified()).fault is None


@pytest.mark.parametrize(("change", "said"), ALTERED, ids=[said[:60] for _, said in ALTERED])
async def test_a_schema_is_compared_with_what_migrations_make(verified, owner, change, said):
    """All of it, added things too: each can change what is read or written unseen."""
    owner.execute(change)
    verdict = await verified()
    assert (verdict.ok, said in (verdict.fault or "")) == (False, True), verdict.fault


async def test_indexes_that_only_make_reading_faster_are_the_operators_own(verified, owner):
    """So are rights: neither changes what is read."""
    owner.execute("create index mine on accounts.events (topic, append_id)")
    owner.execute("grant select on accounts.log to public")
    assert (await verified()).ok


async def test_what_waits_more_than_once_is_called_that(verified, add, owner):
    """Where nothing keeps the queue's rows unique any more."""
    await add(1)
    owner.execute("alter table accounts.pending drop constraint pending_pkey")
    owner.execute("insert into accounts.pending select * from accounts.pending")
    verdict = await verified()
    assert (verdict.ok, verdict.position) == (False, 6)
    assert "waits more than once" in verdict.fault


async def test_what_waits_with_no_mac_of_this_service_is_told(verified, accounts, add):
    """The sequencer would set it aside, if somebody did not keep it from that."""
    await add(1)
    keys = await accounts.event_keys()
    assert (await verified(keys)).ok
    stream = uuid4()
    await write_foreign(accounts, RawEvent(stream, 1, "PartnerApproved", b"{}"))
    verdict = await verified(keys)
    assert (verdict.ok, verdict.position) == (False, 6)
    assert (
        "which waits for its number, does not fit: this service did not write it" in verdict.fault
    )
    assert (await verified()).ok  # an auditor has no keys to tell


async def test_published_hashes_make_what_was_signed(verified, tmp_path):
    """Each file of hashes is there, whole, and leads to the root that was published with it."""
    first, last = sorted((tmp_path / "published").rglob("*.leaves"))
    with every_row() as row:
        for file, content, position in (
            (first, None, 1),
            (first, b"", 1),
            (first, bytes(len(first.read_bytes())), 1),
            (last, None, 4),
            (last, last.read_bytes()[:-32] + bytes(32), 4),
        ):
            with row(f"{file.name} {content!r}"):
                before = file.read_bytes()
                file.unlink()
                if content is not None:
                    file.write_bytes(content)
                verdict = await verified()
                assert (verdict.ok, verdict.position) == (False, position)
                assert "The hashes published" in verdict.fault
                file.unlink(missing_ok=True)
                file.write_bytes(before)
                assert (await verified()).ok


async def test_published_indexes_of_streams_are_those_of_the_events(
    verified, checkpoints, tmp_path, owner, service
):
    """Each of a checkpoint of this log, whoever signed it; those of other logs are left."""
    published = tmp_path / "published"
    (partner_id,) = owner.execute("select min(partner_id) from accounts.partners").fetchone()
    await service.partners.approve(partner_id, STAFF)  # a stream goes on
    await checkpoints.make()
    _, (older, _), (newer, _) = await stored_in(checkpoints)
    for one in (older, newer):
        rows = owner.execute(FIRSTS, [one.size]).fetchall()
        root = MerkleTree([stream_leaf(stream.bytes, at) for stream, at in rows]).root()
        sound = StreamsNote(one, len(rows), root)
        file = published / streams_name(one.origin, one.size)
        with every_row() as row:
            for note, said in (
                (sound._replace(root=bytes(32)).sign(KEY), "is not that of its events"),
                (sound._replace(streams=len(rows) + 1).sign(KEY), "the index says"),
                (sound.sign(OTHER), "is not sound"),
                ("", "is not sound"),
                (
                    sound._replace(checkpoint=one._replace(root=bytes(32))).sign(KEY),
                    "neither stored nor published",
                ),
                (
                    sound._replace(checkpoint=newer if one is older else older).sign(KEY),
                    "neither stored nor published",
                ),
                (sound.sign(KEY), None),
            ):
                with row(one.size, said):
                    file.write_text(note)
                    verdict = await verified()
                    assert verdict.ok == (said is None), verdict.fault
                    assert (said or "") in (verdict.fault or "")
    elsewhere = published / streams_name("example.com/claim-ledger/accounts/lin_x", 3)
    elsewhere.parent.mkdir()
    elsewhere.write_text("another log's")
    assert (await verified()).ok


@pytest.mark.parametrize(
    ("number", "position", "said"),
    [(1, 1, "at position 1"), (4, 5, "at position 5"), (5, None, "that waits for its number")],
)
async def test_ids_that_partners_see_are_kept_from_others(
    verified, add, owner, number, position, said
):
    """Each that an event has drawn stands in the table that keeps it unique."""
    await add(1)
    assert (await verified()).ok
    ids = owner.execute("select public_id from accounts.public_ids order by 1").fetchall()
    (public_id,) = ids[number - 1]
    owner.execute("alter table accounts.public_ids disable trigger append_only")
    owner.execute("delete from accounts.public_ids where public_id = %s", [public_id])
    owner.execute("alter table accounts.public_ids enable always trigger append_only")
    verdict = await verified()
    assert (verdict.ok, verdict.position) == (False, position)
    assert f"the event {said} has drawn is not kept from others" in verdict.fault


async def test_ids_are_looked_up_by_whoever_reads_their_events(
    verified, accounts, place, owner, monkeypatch
):
    """Once, where all are kept; where one is not, a statement over all events finds the first."""
    looked, look = [], ledger_verifier.public_ids_fault

    async def watched(*arguments, waiting_alone):
        looked.append(waiting_alone)
        return await look(*arguments, waiting_alone=waiting_alone)

    monkeypatch.setattr(ledger_verifier, "public_ids_fault", watched)
    monkeypatch.setattr(confirm, "PART_EVENTS_MIN", 2)
    await verified()
    evidence = await published_evidence(place, "accounts", [KEY], None)
    with Spares(1) as spares:
        assert (await verify_ledger(accounts.database, evidence, spares=spares)).ok
        owner.execute("alter table accounts.public_ids disable trigger append_only")
        owner.execute(
            "delete from accounts.public_ids where public_id = "
            "(select max(public_id) from accounts.public_ids)"
        )
        owner.execute("alter table accounts.public_ids enable always trigger append_only")
        verdict = await verify_ledger(accounts.database, evidence, spares=spares)
    assert (verdict.position, "is not kept" in verdict.fault) == (5, True)
    assert looked == [True, True, False]


async def test_no_id_is_taken_for_another(accounts, add, owner):
    """Whatever somebody has put into an event: only the very ids that are kept count."""
    await add(2)
    kept = [row[0].encode() for row in owner.execute("select public_id from accounts.public_ids")]
    odd = [b"", kept[0] + b"\\", kept[0] + b"\0", kept[0] + b",", "\u00fc".encode(), kept[0][:-1]]
    async with accounts.database.background.connection() as connection:

        async def ask(*ids):
            return await are_kept(connection, "accounts", b"".join(one + b'"' for one in ids))

        assert await ask()
        assert await ask(*kept, kept[0])
        assert [one for one in odd if await ask(one) or await ask(*kept, one)] == []


async def test_dates_of_checkpoints_that_cannot_be_right_are_named(verified, accounts, owner):
    """Nothing signs them: ahead of now, before an earlier one, or before what they cover."""
    await verified()
    now = accounts.clock()
    assert await misdated(accounts.database, now) is None
    owner.execute("alter table accounts.checkpoints disable trigger user")
    change = "update accounts.checkpoints set made_at = made_at + %s::interval where size = %s"
    with every_row() as row:
        for by, size, said in (
            ("1 hour", 5, "5 events is dated ahead"),
            ("-1 minute", 5, "5 events is dated before an earlier one"),
            ("-1 hour", 3, "3 events is dated before the event at its end"),
        ):
            with row(said):
                owner.execute(change, [by, size])
                assert said in str(await misdated(accounts.database, now))
                owner.execute(change, [by.removeprefix("-") if "-" in by else f"-{by}", size])
                assert await misdated(accounts.database, now) is None
