"""`claim-ledger projections`, as an operator runs it next to a running service."""

import re
import subprocess

import psycopg
import pytest

from tests.dev_process import PROGRAM, environment, run, until
from tests.world import claim_body

MODELS = {
    *("activity", "claim_documents", "claim_list", "connect_links", "connections"),
    *("onboardings", "partner_events"),
}
WAITING = "select count(*) from pg_locks where not granted"
NEXT = "select count(*) from pg_class where relnamespace = to_regnamespace('live_next')"
LOCK = "pg_advisory_lock(hashtext('claim-ledger rebuild'), hashtext('live'))"
HISTORY = "select count(*) from live.activity where subject = %s"


@pytest.fixture
def owner(team):
    """Return a connection of the owner of the running dev's database."""
    with psycopg.connect(team.dev.facts["database_url"], autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def claim_ids(team):
    """Return the claims that a connected partner has created."""
    _, live, _ = team.partner()
    entity_id = team.entity()
    team.connect(team.link(live), entity_id)
    answers = [
        team.call(live, "POST", "/claims", json=claim_body(entity_id, f"case-{number}"))
        for number in range(5)
    ]
    return [answer.json()["claim_id"] for answer in answers]


@pytest.mark.usefixtures("claim_ids")
def test_status_lists_every_read_model_and_subscriber(team):
    """It shows kinds, versions and positions, and that the heads move."""
    answer = team.do("projections", "status")
    assert answer["is_moving"] is True
    assert {one["ledger"] for one in answer["ledgers"]} == {"accounts", "live", "test"}
    live = {one["name"]: one for one in answer["projections"] if one["ledger"] == "live"}
    assert set(live) >= MODELS | {"mail"}
    assert live["claim_list"]["kind"] == "inline"
    assert (live["claim_list"]["version"], live["claim_list"]["code_version"]) == (1, 1)
    assert live["activity"]["kind"] == "catch-up"
    assert live["mail"]["kind"] == "effect"
    (head,) = [one for one in answer["ledgers"] if one["ledger"] == "live"]
    assert live["claim_list"]["position"] == head["size"] > 0
    assert answer["parked"] == []


@pytest.mark.usefixtures("claim_ids")
def test_everything_is_rebuilt_verified_and_rolled_back_beside_the_service(team):
    """Each read model of each ledger is equal before and after; the demonstration still lists."""
    rebuilt = team.do("projections", "rebuild", "--all")
    names = {(one["ledger"], one["name"]) for one in rebuilt["rebuilt"]}
    assert names >= {(mode, name) for mode in ("live", "test") for name in MODELS}
    assert ("accounts", "partners") in names
    assert {one["swapped"] for one in rebuilt["rebuilt"]} == {True}
    assert rebuilt["differences"] == []
    (claims,) = [
        one for one in rebuilt["rebuilt"] if (one["ledger"], one["name"]) == ("live", "claim_list")
    ]
    assert claims["rows"] > 0
    assert claims["events"] >= claims["rows"]
    assert team.do("projections", "verify")["differences"] == []
    rollback = ("rollback", "claim_list", "--ledger", "live", "--live-made-at")
    back = team.do("projections", *rollback, claims["live_made_at"])
    (row,) = back["rolled_back"]
    assert row["position"] >= claims["position"]
    assert (row["live_version"], row["kept_version"]) == (1, 1)
    # Null where nobody rebuilt it before; others share this dev.
    assert (row["live_made_at"] or "") < row["kept_made_at"] == claims["live_made_at"]
    assert team.answer("projections", *rollback, claims["live_made_at"])[0] == 1
    assert team.do("projections", "verify", "claim_list")["differences"] == []


def test_a_wrong_row_is_found_and_repaired(team, owner, claim_ids):
    """`verify` and `rebuild --if-equal` exit with 1 and name the row; `rebuild` repairs it."""
    owner.execute(
        "update live.claim_list set stage = 'settled', partner_claim_id = 'wrong'"
        " where claim_id = %s",
        [claim_ids[1]],
    )
    difference = {
        "ledger": "live",
        "name": "claim_list",
        "table": "claim_list",
        "key": claim_ids[1],
        "fault": "changed",
        "columns": "partner_claim_id, stage",
    }
    one = ("claim_list", "--ledger", "live")
    for arguments in (("verify", *one), ("rebuild", *one, "--if-equal")):
        code, answer = team.answer("projections", *arguments)
        assert (code, answer["differences"]) == (1, [difference])
    mended = team.do("projections", "rebuild", *one)
    (row,) = mended["rebuilt"]
    assert (row["differences"], row["swapped"], row["mended"]) == (1, True, 1)
    assert team.do("projections", "verify", *one)["differences"] == []


def test_a_killed_rebuild_leaves_everything_in_place(team, owner):
    """If killed before the swap, live rows stay; the next rebuild cleans up and succeeds."""
    one = ("projections", "rebuild", "claim_list", "--ledger", "live", "--json")
    rows = owner.execute("select count(*) from live.claim_list").fetchone()
    with psycopg.connect(team.dev.facts["database_url"]) as reader:
        reader.execute("select from live.claim_list")
        process = subprocess.Popen(
            [PROGRAM, *one, "--data-dir", team.dev.data_dir], env=environment()
        )
        until(lambda: owner.execute(WAITING).fetchone() > (0,))
        process.kill()
        process.wait()
        assert owner.execute(NEXT).fetchone() > (0,)
    assert owner.execute("select count(*) from live.claim_list").fetchone() == rows
    until(lambda: team.raw(*one).returncode == 0)
    assert owner.execute(NEXT).fetchone() == (0,)
    assert owner.execute("select count(*) from live.claim_list").fetchone() == rows


def test_a_date_that_only_postgresql_has_stops_no_command(team, owner):
    """It stands beside the version of a read model's rows, and is overwritten by a rebuild."""
    team.do("projections", "rebuild", "claim_list", "--ledger", "live")
    owner.execute("update live.read_models set rebuilt_at = '4000-01-01 BC'")
    team.do("projections", "status")
    team.do("projections", "rebuild", "claim_list", "--ledger", "live")


def test_status_drops_what_a_killed_verification_left(team, owner):
    """Copies of names must not stay; tables in use by a command are left alone."""
    owner.execute("create schema if not exists live_next")
    owner.execute("create table live_next.entities as select 'A name' as name")
    owner.execute(f"select {LOCK}")
    team.do("projections", "status")
    assert owner.execute(NEXT).fetchone() == (1,)
    owner.execute("select pg_advisory_unlock_all()")
    team.do("projections", "status")
    assert owner.execute(NEXT).fetchone() == (0,)


def test_status_reports_tables_that_its_login_may_not_drop(team, owner):
    """Its exit code is otherwise unaffected; an environment without the owner's login is fine."""
    owner.execute("create schema if not exists live_next")
    owner.execute("create table live_next.entities as select 'A name' as name")
    owner.execute("create role other login password 'other' in role claim_ledger_live")
    other = as_user(team.dev.facts["database_url"], "other")
    both = [
        run("projections", "status", env=team.dev.environment(DATABASE_URL=url))
        for url in (other, "")
    ]
    owner.execute("drop table live_next.entities")
    for done in both:
        assert "live_next has tables of a rebuild or verification" in done.stderr, done.stderr


def test_a_rebuild_that_would_lose_rows_needs_park(team, owner, claim_ids):
    """Only `--park` swaps it in; `rollback` undoes that."""
    one = ("activity", "--ledger", "live")
    query = (
        "select position, append_id, state from live.log join live.events using (append_id)"
        " where topic = 'ClaimCreated' order by position desc limit 1"
    )
    position, append_id, state = owner.execute(query).fetchone()
    rows = owner.execute(HISTORY, [claim_ids[4]]).fetchone()
    with team.unverified("live"):
        rewrite(owner, append_id, b"{secret")
        try:
            told = team.raw("projections", "rebuild", *one)
            code, refused = team.answer("projections", "rebuild", *one)
            left = owner.execute(HISTORY, [claim_ids[4]]).fetchone()
            parked = team.raw("projections", "rebuild", *one, "--park")
            status = team.answer("projections", "status")
            gone = owner.execute(HISTORY, [claim_ids[4]]).fetchone()
        finally:
            rewrite(owner, append_id, state)
    assert "Nothing was swapped. Mend the code, or park by --park." in told.stderr
    (row,) = refused["rebuilt"]
    assert (told.returncode, code, row["swapped"]) == (1, 1, False)
    assert row["put_aside"] == len(refused["put_aside"]) > 0
    first = refused["put_aside"][0]
    assert (first["position"], first["fault"].partition(":")[0]) == (position, "Unreadable")
    assert parked.returncode == 0
    assert re.match(r"OK: 1 read model rebuilt, \d+ events? parked\n", parked.stdout)
    assert (status[0], bool(status[1]["parked"])) == (1, True)
    assert rows == left > (0,)
    assert gone < rows
    team.do("projections", "rollback", *one)
    assert owner.execute(HISTORY, [claim_ids[4]]).fetchone() == rows
    assert team.do("projections", "status")["parked"] == []


def test_park_is_refused_where_no_row_follows_the_log(team):
    """Such rows are written with their events, and have nothing to be parked by."""
    done = team.raw("projections", "rebuild", "claim_list", "--ledger", "live", "--park")
    assert (done.returncode, "none can be parked" in done.stderr) == (2, True)


def rewrite(owner, append_id, state):
    """Replace an event's state, which only a determined owner can do."""
    owner.execute("alter table live.events disable trigger append_only")
    owner.execute("update live.events set state = %s where append_id = %s", [state, append_id])
    owner.execute("alter table live.events enable always trigger append_only")


def test_verify_counts_what_is_parked_and_warns_of_it(team, owner):
    """Nothing differs, so it exits with 0; the warning is on stderr or in the JSON."""
    owner.execute(
        "insert into live.parked"
        " values ('activity', 1000000000, gen_random_uuid(), 'x', '2026-01-01 00:00Z')"
    )
    try:
        told = team.raw("projections", "verify", "activity", "--ledger", "live")
        (row,) = team.do("projections", "verify", "activity", "--ledger", "live")["verified"]
    finally:
        owner.execute("delete from live.parked where position = 1000000000")
    assert (row["differences"], row["parked_streams"], row["parked_events"]) == (0, 1, 1)
    assert "Warning: activity (live): 1 parked event of 1 stream, which" in told.stderr
    assert "parked_streams" in told.stdout
    (row,) = team.do("projections", "verify", "claim_list", "--ledger", "live")["verified"]
    assert row["parked_streams"] == 0


def test_a_second_rebuild_is_refused(team, owner):
    """The refusal has a message and no effect."""
    owner.execute(f"select {LOCK}")
    done = team.raw("projections", "rebuild", "claim_list", "--ledger", "live")
    assert (done.returncode, done.stdout) == (1, "")
    assert "another rebuild or verification of live is running" in done.stderr


def test_a_login_without_ownership_is_refused(team, owner):
    """The error names the missing right."""
    owner.execute("create role poor login password 'poor' in role claim_ledger_live")
    poor = team.dev.environment(DATABASE_URL=as_user(team.dev.facts["database_url"], "poor"))
    done = run("projections", "verify", "claim_list", "--ledger", "live", env=poor)
    assert (done.returncode, done.stdout) == (1, "")
    assert "rebuilding needs the login that owns the tables" in done.stderr


def as_user(url, name):
    """Return the URL of the same database for another login."""
    parts = psycopg.conninfo.conninfo_to_dict(url)
    rest = {key: value for key, value in parts.items() if key not in {"user", "password"}}
    query = f"?host={rest['host']}" if rest.get("host", "").startswith("/") else ""
    host = "" if query else f"{rest.get('host', 'localhost')}:{rest.get('port', 5432)}"
    return f"postgresql://{name}:{name}@{host}/{rest['dbname']}{query}"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rebuild",), "Give the name of a read model, or --all."),
        (("rebuild", "claim_list", "--all"), "Give the name of a read model, or --all."),
        (("rebuild", "claims"), "No read model 'claims'; there are activity, claim_documents"),
        (("verify", "claim_list", "--ledger", "accounts"), "No read model 'claim_list'"),
        (("rollback", "claim_list"), "claim_list is a read model of live, test: give --ledger."),
    ],
)
def test_projections_usage_errors_exit_with_2(team, arguments, said):
    """The usage error explains itself before anything is done."""
    done = team.raw("projections", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.usefixtures("claim_ids")
def test_a_stopped_sequencer_is_a_finding(team, owner):
    """While the head is held and events wait, `status` exits with 1."""
    until(lambda: not owner.execute("select from live.pending").fetchall())
    with psycopg.connect(team.dev.facts["database_url"]) as holder:
        holder.execute("select from live.head for update")
        owner.execute("insert into live.pending select append_id from live.events limit 1")
        # It stands still once an event has waited for five seconds: this one may be as new.
        code, answer = until(
            lambda: not (found := team.answer("projections", "status"))[1]["is_moving"] and found,
            look=0.5,
        )
        owner.execute("delete from live.pending")
    assert code == 1
    stalled = {one["ledger"] for one in answer["ledgers"] if one["is_stalled"]}
    assert stalled == {"live"}


@pytest.mark.parametrize(
    ("position", "parked", "fault"), [(0, 1, None), (1_000_000, 0, "ahead of the log")]
)
def test_a_parked_stream_or_a_log_that_was_cut_is_a_finding(team, owner, position, parked, fault):
    """`status` exits with 1 and names the read model or subscriber."""
    owner.execute("insert into live.subscriptions (name, position) values ('mine', %s)", [position])
    owner.execute(
        "insert into live.parked select 'mine', 1, gen_random_uuid(), 'x', now()"
        " from generate_series(1, %s)",
        [parked],
    )
    code, answer = team.answer("projections", "status")
    owner.execute("delete from live.parked where read_model = 'mine'")
    owner.execute("delete from live.subscriptions where name = 'mine'")
    (mine,) = [one for one in answer["projections"] if one["name"] == "mine"]
    assert (code, mine["parked"], mine["fault"]) == (1, parked, fault)
    assert mine["is_stalled"] is False
    assert mine["oldest_pending_seconds"] >= 0


def test_a_checkpoint_dated_ahead_is_a_finding(team, owner):
    """`status` exits with 1, and `audit checkpoint` makes the next one and warns."""
    team.do("audit", "checkpoint", "--ledger", "live")
    date_last(owner, "30 days")
    done = team.raw("projections", "status")
    assert done.returncode == 1, done.stdout
    assert "Warning: the last checkpoint of live is dated 2" in done.stderr
    _, answer = team.answer("projections", "status")
    (live,) = [one for one in answer["ledgers"] if one["ledger"] == "live"]
    assert live["checkpoint_ahead_seconds"] > 29 * 86_400
    done = team.raw("audit", "checkpoint", "--ledger", "live")
    assert done.returncode == 0
    assert "Warning: the last checkpoint of live is dated 2" in done.stderr
    date_last(owner, "0 days")
    assert "dated" not in team.raw("projections", "status").stderr


def test_what_was_found_beside_the_hashes_is_a_finding(team, owner):
    """`status` exits with 1 and shows it; here nobody knows who wrote it."""
    with team.unverified("live"):
        owner.execute("update live.log_findings set faults = 1 where kind = 'actors'")
        code, answer = team.answer("projections", "status")
        owner.execute("update live.log_findings set faults = 0 where kind = 'actors'")
    (live,) = [one for one in answer["ledgers"] if one["ledger"] == "live"]
    assert (code, live["fault"]) == (1, None)
    assert "was not written by this service" in live["actors_fault"]


def date_last(owner, interval):
    """Date the last checkpoint of live so far from now."""
    owner.execute("alter table live.checkpoints disable trigger append_only")
    owner.execute(
        "update live.checkpoints set made_at = now() + %s::interval"
        " where size = (select max(size) from live.checkpoints)",
        [interval],
    )
    owner.execute("alter table live.checkpoints enable always trigger append_only")
