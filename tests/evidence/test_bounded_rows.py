"""What a ledger's login writes takes little memory of those who verify, sign and number."""

# ruff: noqa: S608 - what is large is made by the server
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from asyncpg import CheckViolationError

import service as package
from service.archive.port import ObjectTooLarge
from service.evidence.checkpoint import NOTE_BYTES_MAX
from service.evidence.checkpoints.finding import NOT_OURS, finding
from service.evidence.checkpoints.names import note_name
from service.evidence.checkpoints.signatures import LINES_MAX
from service.evidence.countersigning.search import newest_countersigned
from service.evidence.demands import Demands
from service.evidence.note import SIGNATURES_MAX, NoteInvalid
from service.evidence.verify import ledger_verifier
from service.evidence.verify.expectations import Evidence, Expectations, published_evidence
from service.evidence.verify.ledger_verifier import verify_ledger
from service.facts.caller import LEDGERS
from service.ledger.sequencer import HeadAltered, Sequencer
from service.ledger.sql import Sql, queries
from tests.evidence.checkpointing import KEY, checkpointed
from tests.evidence.witnesses import policy_of
from tests.tables import every_row
from tests.world import STAFF

LARGE = 1 << 20
HALF = 100_000
"""As much of an origin as an index holds."""
COLUMNS = """
select
    c.relname, a.attname,
    array(
        select pg_get_constraintdef(k.oid) from pg_constraint as k
        where k.conrelid = c.oid and a.attnum = any(k.conkey) and k.contype = 'c'
    )
from pg_class as c join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0
where
    c.relnamespace = %(ledger)s::regnamespace and c.relkind = 'r' and c.relname = any(%(tables)s)
    and a.atttypid = any('{text,bytea,text[],bytea[],jsonb}'::regtype[])
    and (
        has_column_privilege('claim_ledger_' || %(ledger)s, c.oid, a.attnum, 'insert')
        or has_column_privilege('claim_ledger_' || %(ledger)s, c.oid, a.attnum, 'update')
    )
"""
COMPARED = {("parked", "error"), ("parked", "read_model"), ("public_ids", "public_id"),
            ("subscriptions", "name")}  # fmt: skip
"""No statement here sends them."""
BOUNDED = ("checkpoints", "head", "log_findings", "log_verification", "data_keys", "event_keys",
           "service_keys", "witness_refusals")  # fmt: skip
READS = re.compile(rf"\bledger\.(?:{'|'.join(BOUNDED)})\b")
SENT = re.compile(r"\b(?:origin|note|tree|part|fault|mac|wrapped|master_key_id)\b")
TEXT, BYTES = f"repeat('x', {LARGE})", f"convert_to(repeat('x', {LARGE}), 'UTF8')"
LINE = "'w', '\\x00000001'"
KEY_ID = "00000000-0000-0000-0000-000000000001"
ORIGIN, NEVER = "example.com/claim-ledger/accounts/large", "2999-01-01T00:00:00+00:00"
ARGUMENTS = {
    "service.evidence findings": "",
    "service.evidence.checkpoints finding": "",
    "service.evidence.checkpoints head": "",
    "service.evidence.checkpoints last": f"'{ORIGIN}'",
    "service.evidence.checkpoints newest": "",
    "service.evidence.checkpoints notes": f"'{ORIGIN}', 0, 9",
    "service.evidence.checkpoints two_largest": f"'{ORIGIN}'",
    "service.evidence.countersigning newest": f"'{ORIGIN}', 10, array['w'], array['\\x00'::bytea]",
    "service.evidence.countersigning notes": f"'{ORIGIN}', array[1]",
    "service.evidence.countersigning signed_notes": "",
    "service.evidence.proofs made_by": f"'{NEVER}'",
    "service.evidence.proofs of_size": "1",
    "service.evidence.replay signed": f"1, '{ORIGIN}'",
    "service.evidence.replay signed_sizes": "",
    "service.evidence.tiles newest": f"'{ORIGIN}'",
    "service.evidence.tiles sizes": f"'{ORIGIN}', 0, 10",
    "service.evidence.verify checkpoints": "",
    "service.evidence.verify head": "",
    "service.evidence.verify misdated": "now(), interval '1 second'",
    "service.evidence.verify note": f"'{ORIGIN}', 1",
    "service.evidence.verify people_signed": f"10, {NOTE_BYTES_MAX}",
    "service.evidence.verify slices_hold": "",
    "service.evidence.verify slices_signed": f"0, null, array['{ORIGIN}'], array[9], array[9], 10",
    "service.ledger data_keys": f"array['{KEY_ID}'::uuid]",
    "service.ledger data_keys_stored": f"array['{KEY_ID}'::uuid]",
    "service.ledger event_keys": "",
    "service.ledger sequencer_hold": "",
    "service.ledger service_keys": "array['x']",
}
"""Every statement that sends what such a row holds, with arguments by which it finds one."""
KEYS = {
    "data_keys": f"values ('{KEY_ID}', {BYTES}, {TEXT})",
    "event_keys": f"values (1, true, {BYTES}, {TEXT}, now())",
    "service_keys": f"values ('x', {BYTES}, {TEXT})",
}


def statements() -> Iterator[Sql]:
    """Yield those of evidence and of the sequencer."""
    top = Path(package.__file__).parent
    for path in sorted([*(top / "evidence").rglob("queries.sql"), top / "ledger" / "queries.sql"]):
        name = ".".join(("service", *path.parent.relative_to(top).parts))
        yield from (one for one in vars(queries(name)).values() if isinstance(one, Sql))


def test_what_a_login_writes_is_bounded_where_it_is_kept(owner, service):
    """Each text of a table that they read, but of read models, has a limit in bytes."""
    tables = {name for one in statements() for name in re.findall(r"\bledger\.(\w+)", one.text)}
    tables -= {name for model in service.read_models for name in model.tables}
    with every_row() as row:
        for ledger in LEDGERS:
            asked = {"ledger": ledger, "tables": sorted(tables)}
            for table, column, bounds in owner.execute(COLUMNS, asked).fetchall():
                if (table, column) not in COMPARED:
                    with row(ledger, table, column):
                        assert f"octet_length({column})" in " ".join(bounds)


@pytest.fixture
def before(owner):
    """Have accounts hold large rows from before there were bounds, and no bounds yet."""
    dropped = """
    select format('alter table accounts.%I drop constraint %I', c.relname, k.conname)
    from pg_constraint as k join pg_class as c on c.oid = k.conrelid
    where c.relnamespace = 'accounts'::regnamespace and k.conname like '%\\_bounded'
    """
    for (drop,) in owner.execute(dropped.encode()).fetchall():
        owner.execute(drop)
    owner.execute("alter table accounts.checkpoints disable trigger user")
    text, large = TEXT, BYTES
    for statement in (
        f"insert into accounts.checkpoints values ('{ORIGIN}', 1, {text}, {large}, '2998-01-01')",
        f"insert into accounts.checkpoints values (repeat('x', {HALF}), 1, 'x', '', '2998-01-02')",
        "insert into accounts.checkpoints values ('x', 2, 'x', '', '2000-01-01')",
        f"insert into accounts.checkpoint_signatures values ('{ORIGIN}', 1, {LINE}, 'x', now())",
        f"insert into accounts.witness_refusals values ({LINE}, repeat('x', {HALF}), 1, now())",
        f"update accounts.head set tree = {large}, part = {large}",
        f"update accounts.log_findings set fault = {text}, mac = {large}",
        f"update accounts.log_verification set tree = {large}, fault = {text}, mac = {large}",
    ):
        assert owner.execute(statement.encode()).rowcount, statement
    return owner


def test_what_is_larger_is_not_sent(before):
    """Whatever reads such a row gets a note's bytes of it at most."""
    asked = {
        one.name: one.on("accounts")
        for one in statements()
        if READS.search(one.text) and SENT.search(one.text)
        if not re.search(r"\b(?:insert into|update|delete from) ledger\.", one.text)
    }
    assert set(asked) == set(ARGUMENTS)
    before.prepare_threshold = None  # the names of statements are ours
    for table, columns in KEYS.items():
        before.execute(f"insert into accounts.{table} {columns}".encode())
    with every_row() as row:
        for name, arguments in ARGUMENTS.items():
            with row(name):
                before.execute("deallocate all")
                before.execute(f"prepare one as {asked[name]}".encode())
                given = f"({arguments})" if arguments else ""
                rows = before.execute(f"execute one{given}".encode()).fetchall()
                sent = [one for columns in rows for one in columns if isinstance(one, str | bytes)]
                assert rows, "it has found none"
                assert max(map(len, sent), default=0) <= NOTE_BYTES_MAX


async def test_what_is_larger_is_not_sound(service, before):
    """Whoever verifies says so; what is noted of passes is nobody's; and nothing is numbered."""
    accounts = service.accounts
    assert (await finding(accounts)).fault == NOT_OURS
    await service.partners.add("A partner", "a@example.com", STAFF)
    with pytest.raises(HeadAltered):
        await Sequencer(accounts).step()
    told = (await verify_ledger(accounts.database, Evidence([KEY]))).fault
    assert told == "The tree in the head of the log is not that of its events."
    before.execute("update accounts.head set tree = ''")
    told = (await verify_ledger(accounts.database, Evidence([KEY]))).fault
    assert told == "The stored checkpoint of 1 event is not sound: not a signed note."


async def test_a_part_of_a_tree_that_is_not_needed_stops_nothing(service, before, add):
    """A row from before there were bounds is within them once something was numbered."""
    before.execute("update accounts.head set tree = ''")
    with_bounds = "alter table accounts.head add check (octet_length(part) <= 2048) not valid"
    before.execute(with_bounds)
    await add(1)
    assert await Sequencer(service.accounts).step() == 1


async def test_a_part_of_a_tree_that_is_none_is_named(accounts, owner, add):
    """Where the log has no tree yet, or no more."""
    await add(1)
    owner.execute("update accounts.head set tree = null, part = 'x'")
    with pytest.raises(HeadAltered):
        await Sequencer(accounts).step()


async def test_stored_checkpoints_are_read_in_pages(accounts, checkpoints, add, monkeypatch):
    """Nothing is kept of those that we have not signed but the first fault."""
    made = await checkpointed(checkpoints, add, 1)
    store = (
        "insert into ledger.checkpoints select $1, one, $2, '' from generate_series(3, 9) as one"
    )
    await accounts.database.background.fetch(
        Sql("store", "Store unsigned checkpoints.", store), made.checkpoint.origin, "x"
    )
    kept, end = list[Expectations](), Expectations.end

    async def seen(expectations):
        await end(expectations)
        kept.append(expectations)

    monkeypatch.setattr(Expectations, "end", seen)
    monkeypatch.setattr(ledger_verifier, "_ROWS_MAX", 2)
    found = await verify_ledger(accounts.database, Evidence([KEY]))
    assert found.fault == "The stored checkpoint of 3 events is not sound: not a signed note."
    assert [(one.size, one.root is None) for one in kept[0].by_size] == [(2, False), (3, True)]


class Counted:
    """A connection that knows how many rows each of its statements sent at the most."""

    def __init__(self, connection):
        """Count nothing yet."""
        self.connection = connection
        self.rows = dict[str, int]()

    async def fetch(self, statement, *args):
        """Count the rows of a statement."""
        rows = await self.connection.fetch(statement, *args)
        name = statement.split("\n")[0].removeprefix("-- ").split()[-1]
        self.rows[name] = max(len(rows), self.rows.get(name, 0))
        return rows


async def test_a_flood_of_lines_takes_little_memory(checkpoints, asking, witnesses, accounts, add):
    """Lines of others are read in limited numbers, and hide none of those that are demanded."""
    made = await checkpointed(checkpoints, add, 1)
    await asking[0].step()
    flood = """
    insert into ledger.checkpoint_signatures
    select $1, $2, $3, $4, int8send(one), '2000-01-01' from generate_series(1, $5::bigint) as one
    """
    sql, stored = Sql("flood", "Store lines of nobody.", flood), accounts.database.background
    which = (made.checkpoint.origin, made.checkpoint.size)
    await stored.fetch(sql, *which, "example.net/stranger", b"\0\0\0\1", 2 * LINES_MAX)
    demands = Demands(policy_of(1, witnesses[0]))
    async with stored.connection() as connection:
        counted = Counted(connection)
        await newest_countersigned(counted, "accounts", demands, lambda *_: True)
    assert counted.rows["demanded"] <= len(witnesses[0].keys)
    assert counted.rows["signatures"] == SIGNATURES_MAX
    await stored.fetch(sql, *which, *demands.policy.keys[0].which, 2 * LINES_MAX)
    async with stored.connection() as connection:
        counted = Counted(connection)
        with pytest.raises(NoteInvalid):
            await newest_countersigned(counted, "accounts", demands, lambda *_: True)
    assert counted.rows["demanded"] == LINES_MAX


@pytest.mark.parametrize(
    ("ending", "told"),
    [
        ("txt", "The published checkpoint of 2 events is not sound: not a signed note."),
        ("leaves", "The hashes published with the checkpoint of 2 events are not as many as"),
        ("streams", "The index of streams published with the checkpoint of 2 events is not sound"),
    ],
)
async def test_what_is_published_is_read_in_bounded_bytes(
    accounts, checkpoints, add, place, tmp_path, ending, told
):
    """Whoever can write to the archive makes a large file of nothing: that is not sound."""
    await add(1)
    origin, size, _ = (await checkpoints.make()).checkpoint
    path = tmp_path / "published" / note_name(origin, size).replace("txt", ending)
    path.touch()
    os.truncate(path, 1 << 30)
    evidence = await published_evidence(place, "accounts", [KEY], None)
    assert (await verify_ledger(accounts.database, evidence)).fault.startswith(told)
    if ending == "txt":
        with pytest.raises(ObjectTooLarge):
            await checkpoints.make()


@pytest.mark.parametrize("column", ["note", "tree", "origin"])
async def test_a_login_stores_nothing_larger(accounts, column):
    """The limits hold for whoever writes rows from now on."""
    values = {"origin": "x", "note": "x", "tree": ""} | {column: "x" * (NOTE_BYTES_MAX + 1)}
    store = """
    insert into ledger.checkpoints (origin, size, note, tree)
    values ($1, 1, $2, convert_to($3, 'UTF8'))
    """
    with pytest.raises(CheckViolationError):
        await accounts.database.background.fetch(
            Sql("store", "Store one.", store), *values.values()
        )
