"""`claim-ledger audit verify`, on a database that belongs to the test."""

import json
import re

import psycopg
import pytest

from service.evidence.checkpoint import Checkpoint
from service.evidence.note import NoteKey
from tests.databases import cloned
from tests.dev_process import environment, run
from tests.evidence.sealed_log import KEY, ORIGIN, SIZE, SIZES
from tests.terminal import watched
from tests.world import MASTER_KEY, PUBLIC_URL, TEAM

VERIFY = ("audit", "verify")
ALTERED = "update live.events set mac = overlay(mac placing 'zz' from 10 for 2)"
PUT_IN = """
with forged as (
    insert into live.events (originator_id, originator_version, topic, state)
    select originator_id, 2, topic, state from live.events returning append_id
)
insert into live.pending (append_id) select append_id from forged
"""

WAIT = """
with forged as (
    insert into live.events (originator_id, originator_version, topic, state)
    values (gen_random_uuid(), 1, 'StageChanged', '{"meta": {"actor": "system:worker"}}')
    returning append_id
)
insert into live.pending (append_id) select append_id from forged
"""


@pytest.fixture
async def log(sealed, tmp_path):
    """Return a log with checkpoints in the accounts ledger; its archive is a folder."""
    made = sealed[1]
    folder = tmp_path / "published" / "checkpoints" / ORIGIN
    folder.mkdir(parents=True)
    for note in made.published.published:
        (folder / f"{note.size:020}.txt").write_text(note.text)
        leaves = await made.published.read(note.leaves_name)
        (folder / f"{note.size:020}.leaves").write_bytes(leaves)
    return made


@pytest.fixture
def installed(database_url, log, tmp_path) -> dict[str, str]:
    """Return the environment of an installation that publishes."""
    assert log.rows
    return environment(
        DATABASE_URL=database_url,
        MASTER_KEYS=MASTER_KEY,
        PUBLIC_URL=PUBLIC_URL,
        CHECKPOINT_KEYS=KEY.private_text,
        ARCHIVE_URL=(tmp_path / "published").as_uri(),
    )


def verified(env, *arguments) -> tuple[int, dict]:
    """Run the command; return its exit code and the object that it printed."""
    done = run(*VERIFY, *arguments, "--json", env=env)
    assert done.stdout.count("\n") == 1, done.stderr
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def change(database_url, statement, *tables):
    """Change the database as its owner."""
    with psycopg.connect(database_url) as connection:
        for table in tables:
            connection.execute(f"alter table accounts.{table} disable trigger user")
        connection.execute(statement)


def signing_environment(database_url) -> dict[str, str]:
    """Return the environment of an installation that signs its checkpoints."""
    return environment(
        DATABASE_URL=database_url,
        MASTER_KEYS=MASTER_KEY,
        PUBLIC_URL=PUBLIC_URL,
        CHECKPOINT_KEYS=KEY.private_text,
        STAFF=TEAM,
    )


@pytest.fixture(scope="module")
def signed_live(postgres_url, template):
    """Return the name of a database whose live ledger is signed, to be cloned."""
    with cloned(postgres_url, template) as url:
        env = signing_environment(url)
        assert run("staff", "add", TEAM, env=env).returncode == 0
        assert run("audit", "checkpoint", "--ledger", "live", env=env).returncode == 0
        yield (url.rpartition("/")[2],)


@pytest.fixture
def signing(signed_live, database_url) -> dict[str, str]:
    """Return the environment of this test's installation whose live ledger is signed."""
    assert signed_live[0] not in database_url
    return signing_environment(database_url)


def alter_live(database_url, table, statement):
    """Change the live ledger as its owner, who covers it up."""
    with psycopg.connect(database_url) as connection:
        connection.execute(f"alter table live.{table} disable trigger append_only")
        connection.execute(statement)
        connection.execute(f"alter table live.{table} enable always trigger append_only")


def test_a_sound_installation_verifies(installed, tmp_path):
    """All three ledgers, live first, have size and root and no fault; the exit code is 0."""
    metrics = tmp_path / "verified.prom"
    code, answer = verified(installed, "--metrics", metrics)
    sound = re.findall(
        r"^claim_ledger_verification_failed{.*} 0$", metrics.read_text(), re.MULTILINE
    )
    assert (len(sound), metrics.stat().st_mode & 0o777) == (3, 0o644)
    names = [one["ledger"] for one in answer["ledgers"]]
    sizes = [one["size"] for one in answer["ledgers"]]
    assert (code, answer["ok"], answer["ledger"]) == (0, True, "live")
    assert {"position", "fault"}.isdisjoint(answer)
    assert (names, sizes) == (["accounts", "live", "test"], [SIZE, 0, 0])


def test_people_see_whose_figures_they_are(installed):
    """The figures above the table are labelled with their ledger."""
    told = run(*VERIFY, env=installed).stdout
    assert "what follows is of live alone" in told.split("ledgers\n")[0]


def test_one_ledger_can_be_verified_alone(installed):
    """A single ledger has a single verdict."""
    code, answer = verified(installed, "--ledger", "accounts")
    assert (code, list(answer)) == (
        0,
        [
            *("ok", "ledger", "size", "root", "checkpoints", "published", "lineages"),
            *("set_aside", "set_aside_size"),
        ],
    )
    assert (answer["ok"], answer["size"], answer["checkpoints"]) == (True, SIZE, 3)
    assert answer["published"] == 3
    nowhere = {name: value for name, value in installed.items() if "ARCHIVE_URL" not in name}
    assert verified(nowhere, "--ledger", "accounts")[1]["published"] is None


def test_an_empty_archive_is_a_fault(installed, tmp_path):
    """A wrong location proves nothing: stored checkpoints must be published there."""
    (tmp_path / "empty").mkdir()
    wrong = installed | {"CLAIM_LEDGER_ARCHIVE_URL": (tmp_path / "empty").as_uri()}
    metrics = tmp_path / "verified.prom"
    code, answer = verified(wrong, "--ledger", "accounts", "--metrics", metrics)
    assert 'claim_ledger_verification_failed{ledger="accounts"} 1\n' in metrics.read_text()
    assert (code, answer["position"], answer["published"]) == (1, SIZES[0], 0)
    assert "is not where they are published" in answer["fault"]


def test_an_auditor_needs_no_master_key(installed):
    """Public keys and a database suffice; without any key there is no verdict."""
    ring, unused = "CLAIM_LEDGER_CHECKPOINT_KEYS", ("MASTER_KEYS", "PUBLIC_URL")
    env = {name: value for name, value in installed.items() if not name.endswith(unused)}
    for keys, arguments in (
        ({ring: KEY.private_text}, ()),
        ({ring: KEY.public_text}, ()),
        ({ring: ""}, ("--public-key", KEY.public_text)),
    ):
        code, answer = verified(env | keys, "--ledger", "accounts", *arguments)
        assert (code, answer["ok"], answer["checkpoints"]) == (0, True, 3)
    code, answer = verified(env | {ring: ""})
    assert (code, answer["code"]) == (2, "validation_failed")
    assert "no key to check signatures with" in answer["message"]
    for wrong in ({ring: "x"}, {"CLAIM_LEDGER_PUBLISH_T0": "file:///x"}):
        done = run(*VERIFY, env=env | wrong)
        assert (done.returncode, done.stdout) == (1, "")
        assert next(iter(wrong)) in done.stderr


def test_an_altered_row_is_reported_with_its_position(installed, database_url):
    """The first fault comes first with its position, in JSON and in text; the exit code is 1."""
    change(
        database_url,
        "update accounts.events set state = state || ' ' from accounts.log as l"
        " where l.append_id = events.append_id and l.position = 33",
        "events",
    )
    code, answer = verified(installed)
    told = run(*VERIFY, env=installed)
    assert (code, answer["ok"], answer["ledger"], answer["position"]) == (1, False, "accounts", 33)
    assert answer["fault"] == "The event at position 33 is not the one that was hashed there."
    assert [one["ok"] for one in answer["ledgers"]] == [False, True, True]
    assert told.returncode == 1
    assert "The event at position 33 is not the one that was hashed there." in told.stdout


@pytest.mark.parametrize("name", ["", "-"])
def test_metrics_go_to_a_file_that_has_a_name(installed, name):
    """An empty variable in a timer's line is told at once."""
    done = run(*VERIFY, "--metrics", name, env=installed)
    assert (done.returncode, done.stdout, "'--metrics'" in done.stderr) == (2, "", True)


def test_metrics_that_cannot_be_written_keep_no_verdict_away(installed, database_url, tmp_path):
    """That they could not is one more thing that is wrong, also where the log holds."""
    nowhere = ("--ledger", "accounts", "--metrics", tmp_path / "none" / "verified.prom")
    code, answer = verified(installed, *nowhere)
    assert (code, answer["ok"], "fault" in answer) == (1, False, False)
    assert "No such file or directory" in answer["metrics_fault"]
    code, answer = verified(installed, "--ledger", "accounts", "--metrics", tmp_path / ("x" * 256))
    assert (code, "File name too long" in answer["metrics_fault"]) == (1, True)
    change(
        database_url,
        "update accounts.events set state = state || ' ' from accounts.log as l"
        " where l.append_id = events.append_id and l.position = 33",
        "events",
    )
    code, answer = verified(installed, *nowhere)
    assert (code, answer["ok"], answer["position"]) == (1, False, 33)
    assert "No such file or directory" in answer["metrics_fault"]
    told = run(*VERIFY, *nowhere, env=installed)
    assert (told.returncode, told.stderr.count("\n")) == (1, 1)
    assert told.stderr.startswith(f"Warning: --metrics: {tmp_path / 'none'} cannot be written")
    assert "The event at position 33 is not the one that was hashed there; --metrics" in told.stdout


@pytest.mark.parametrize(
    ("forged", "position"), [(ALTERED, 1), (PUT_IN, 2)], ids=["altered", "put in"]
)
def test_a_forged_event_of_the_lineage_keeps_no_verdict_away(
    signing, database_url, forged, position
):
    """What is said beside a verdict rests on those events, too: it is said of logs that hold.

    Nor does it keep anybody from asking how the logs are.
    """
    alter_live(database_url, "events", forged)
    code, answer = verified(signing, "--ledger", "live")
    assert (code, answer["ok"], answer["position"]) == (1, False, position)
    done = run("projections", "status", "--json", env=signing)
    assert len(json.loads(done.stdout)["ledgers"]) == 3


def test_a_ring_is_used_without_what_signs_and_makes_links(signing, database_url, tmp_path):
    """It finds what waits for its number and nobody of ours wrote; without it, nobody would.

    One that cannot be read is no ring that is absent.
    """
    env = signing | {"CLAIM_LEDGER_CHECKPOINT_KEYS": KEY.public_text}
    del env["CLAIM_LEDGER_PUBLIC_URL"]
    code, answer = verified(env, "--ledger", "live")
    assert (code, answer["ok"]) == (0, True)
    alter_live(database_url, "events", WAIT)
    code, answer = verified(env, "--ledger", "live")
    assert (code, answer["ok"], answer["position"]) == (1, False, 2)
    ring, metrics = env.pop("CLAIM_LEDGER_MASTER_KEYS"), tmp_path / "verified.prom"
    assert verified(env, "--ledger", "live")[0] == 0
    for fault in (
        {"CLAIM_LEDGER_MASTER_KEYS": ring[:-2]},
        {"CLAIM_LEDGER_MASTER_KEYS_FILE": str(tmp_path / "not-mounted")},
    ):
        done = run(*VERIFY, "--metrics", metrics, env=env | fault)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert done.stderr.startswith("Error: CLAIM_LEDGER_MASTER_KEYS: ")
    assert not metrics.exists()


@pytest.mark.parametrize("date", ["infinity", "-infinity", "4000-01-01 BC", "294000-01-01"])
def test_a_date_that_cannot_be_read_keeps_no_verdict_away(signing, database_url, date):
    """Nobody signs a checkpoint's date: it is warned of, and signing goes on."""
    dated = f"update live.checkpoints set made_at = '{date}'"  # noqa: S608 - one of ours
    alter_live(database_url, "checkpoints", dated)
    for command in ("verify", "checkpoint"):
        done = run("audit", command, "--ledger", "live", env=signing)
        assert done.returncode == 0, done.stderr


def test_an_altered_head_is_named(signing, database_url):
    """Whoever would sign or begin something is told to verify, not that it is a fault of ours."""
    with psycopg.connect(database_url) as connection:
        connection.execute("update live.head set tree = '\\x00'")
        connection.execute("insert into live.pending values (99)")
    done = run("audit", "checkpoint", "--ledger", "live", env=signing)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the head of live has a tree of another size. `audit verify` shows more" in done.stderr
    assert verified(signing, "--ledger", "live")[0] == 1


def test_a_deleted_checkpoint_is_missed(installed, database_url):
    """A stored checkpoint that is gone is noticed because it was published."""
    gone = f"delete from accounts.checkpoints where size = {SIZES[1]}"  # noqa: S608 - a number
    change(database_url, gone, "checkpoints")
    code, answer = verified(installed, "--ledger", "accounts")
    assert (code, answer["position"]) == (1, SIZES[1])
    assert answer["fault"].endswith("is missing from the database.")


def test_a_kept_checkpoint_has_to_hold(installed, log, tmp_path):
    """A checkpoint under an unknown key is checked once that key is given."""
    root = Checkpoint.open(log.published.published[0].text, [KEY]).root
    auditor = NoteKey.of_seed(KEY.name, b"\2" * 32)
    for name, checkpoint, key in (
        ("good", Checkpoint(ORIGIN, SIZES[0], root), KEY),
        ("bad", Checkpoint(ORIGIN, SIZE + 1, root), KEY),
        ("other", Checkpoint(ORIGIN, SIZES[0], root), auditor),
        ("live", Checkpoint(f"{KEY.name}/live/1", SIZES[0], root), KEY),
    ):
        (tmp_path / name).write_text(checkpoint.sign(key))
    assert verified(installed, "--checkpoint", tmp_path / "good")[0] == 0
    code, answer = verified(installed, "--checkpoint", tmp_path / "bad")
    assert (code, answer["ledger"], answer["position"]) == (1, "accounts", SIZE + 1)
    code, answer = verified(installed, "--checkpoint", tmp_path / "other")
    assert (code, answer["code"]) == (2, "validation_failed")
    assert "CLAIM_LEDGER_CHECKPOINT_KEYS or give --public-key" in json.dumps(answer)
    key = ("--public-key", auditor.public_text)
    assert verified(installed, "--checkpoint", tmp_path / "other", *key)[0] == 0
    code, answer = verified(installed, "--checkpoint", tmp_path / "live", "--ledger", "accounts")
    assert (code, answer["code"]) == (2, "validation_failed")


def test_verify_usage_errors_exit_with_2(installed, tmp_path):
    """Invalid keys, invalid files and exclusive options are usage errors."""
    (tmp_path / "bytes").write_bytes(b"\xff")
    (tmp_path / "empty").write_bytes(b"")
    key = ("--public-key", KEY.public_text)
    file = tmp_path / "bytes"
    for arguments, said in (
        (["--public-key", "x"], "as `claim-ledger audit keygen` prints it"),
        (["--public-key", KEY.private_text], "this is a private key"),
        (["--checkpoint", tmp_path / "none"], "No such file"),
        (["--checkpoint", file], "not a signed note"),
        (["--ledger", "none"], "is not one of"),
        (["--export", tmp_path / "none"], "does not exist"),
        (["--export", file], "needs --public-key"),
        (["--export", file, *key, "--checkpoint", tmp_path / "empty"], "not a signed note"),
        (["--export", file, "--ledger", "live"], "no --ledger, --data-dir"),
    ):
        code, answer = verified(installed, *arguments)
        assert (code, answer["code"]) == (2, "validation_failed")
        assert said in answer["message"]
        assert KEY.private_text not in answer["message"]


def test_an_export_needs_no_installation(tmp_path):
    """It needs no settings and no database; a file that is no export is a fault, with 1."""
    (tmp_path / "file").write_text("{}")
    key = ("--public-key", KEY.public_text)
    code, answer = verified(environment(), "--export", tmp_path / "file", *key)
    assert (code, answer["ok"], answer["position"]) == (1, False, None)
    assert answer["fault"]


def test_a_receipt_is_not_taken_for_an_export(tmp_path):
    """Nor an export for a receipt: the right command is named, with exit code 2."""
    key = ("--public-key", KEY.public_text)
    for kind, arguments, said in (
        ("receipt", (*VERIFY, "--export"), "this is a receipt, use `claim-ledger audit check`"),
        ("export", ("audit", "check"), "this is an export, use `claim-ledger audit verify"),
    ):
        file = tmp_path / kind
        file.write_text(f'{{"format":"claim-ledger {kind} v1","ledger":"live"}}\n')
        done = run(*arguments, file, *key, env=environment())
        assert done.returncode == 2
        assert said in done.stdout + done.stderr


def test_an_unreadable_archive_is_no_verdict(installed, tmp_path):
    """If evidence cannot be fetched, its location is named and the exit code is 1."""
    note = tmp_path / "published" / "checkpoints" / ORIGIN / f"{SIZES[0]:020}.txt"
    note.unlink()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    note.symlink_to(tmp_path / "loop")
    code, answer = verified(installed)
    assert (code, answer["code"]) == (1, "service_unavailable")
    assert str(note) in answer["message"]


def test_a_person_sees_a_bar(installed):
    """On a terminal stderr shows a progress bar; in a pipe it shows nothing."""
    shown = watched(VERIFY, installed)
    assert "verifying accounts" in shown
    assert "48/48" in shown
