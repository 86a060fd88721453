"""`claim-ledger audit keygen`, `public-key`, `checkpoint` and `lineage`, run as processes."""

import base64
import json
import stat
from pathlib import Path

import httpx
import psycopg
import pytest

from service.cli.dev.state import kept_secrets, write_private
from service.evidence.checkpoint import Checkpoint
from service.evidence.note import NoteKey
from tests.dev_process import environment, run
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS
from tests.terminal import answered

LEDGERS = ["accounts", "live", "test"]


def published(team) -> Path:
    """Return the folder that the dev publishes to."""
    return team.dev.data_dir / "published"


def test_keygen_prints_a_matching_key_pair():
    """The two keys match, and the name is the host of the public URL."""
    done = run(
        "audit", "keygen", "--json", env=environment(PUBLIC_URL="https://api.example.com:8443")
    )
    answer = json.loads(done.stdout)
    key = NoteKey.parse(answer["private_key"])
    assert key.can_sign
    assert key.name == "api.example.com/claim-ledger"
    assert key.public_text == answer["public_key"]
    again = json.loads(run("audit", "keygen", "--json", "--name", key.name).stdout)
    assert again["private_key"] != answer["private_key"]


def test_keygen_without_json_prints_two_lines():
    """People get the two keys on two lines."""
    lines = run("audit", "keygen", "--name", "example.com/ledger").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["private_key", "public_key"]
    assert lines[0].split()[1].startswith("PRIVATE+KEY+example.com/ledger+")


def test_keygen_without_a_name_is_refused():
    """The command asks for a name."""
    done = run("audit", "keygen")
    assert done.returncode == 2
    assert "--name: expected one such as example.com/claim-ledger" in done.stderr


@pytest.mark.parametrize("origin", ["https://[::1", "https://api.example.com/v1", "nowhere"])
def test_keygen_takes_no_name_from_a_faulty_setting(origin):
    """It is named in one line, where it is what the key would be named after."""
    done = run("audit", "keygen", env=environment(PUBLIC_URL=origin))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("Error: CLAIM_LEDGER_PUBLIC_URL: ")
    given = ("--name", "example.com/ledger")
    assert run("audit", "keygen", *given, env=environment(PUBLIC_URL=origin)).returncode == 0


def test_a_faulty_key_service_is_named_by_its_setting():
    """As where a command has an installation."""
    name = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
    env = environment(KMS_ENDPOINT="https://kms.example.com")
    done = run("keys-at-rest", "keygen", "--kms-key", name, env=env)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("Error: CLAIM_LEDGER_KMS_ENDPOINT: expected ")


def test_keygen_with_an_invalid_name_is_refused():
    """Names with spaces or a plus, and paths that cannot be published under, are refused."""
    for name in ("a b", "a+b", "../a", "a//b", "/a"):
        done = run("audit", "keygen", "--name", name)
        assert (done.returncode, done.stdout) == (2, ""), name
        assert "--name" in done.stderr


def test_dev_checkpoints_are_signed_by_its_own_key(team):
    """They work at once, cover what was just written, and are signed by the dev's key."""
    team.partner()
    written = {ledger: events_of(team, ledger) for ledger in LEDGERS}
    rows = team.do("audit", "checkpoint")["checkpoints"]
    (row,) = team.do("audit", "public-key")["keys"]
    key = NoteKey.parse(row["public_key"])
    assert not key.can_sign
    assert [one["ledger"] for one in rows] == LEDGERS
    for one in rows:
        # Whether it is new depends on the dev's own worker, which may have been first.
        assert (one["published"], one["fault"]) == (True, None)
        assert one["size"] >= written[one["ledger"]] > 0
        path = published(team) / "checkpoints" / one["origin"] / f"{one['size']:020}.txt"
        checkpoint = Checkpoint.open(path.read_text(), [key])
        assert checkpoint == (one["origin"], one["size"], base64.b64decode(one["root"]))
        assert checkpoint.ledger == one["ledger"]
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_tiles_are_written_at_once_and_served(team):
    """Whatever the dev's own worker has written; a place that holds something else is reported."""
    (made,) = team.do("audit", "checkpoint", "--ledger", "test")["checkpoints"]
    (row,) = team.do("audit", "tiles", "--ledger", "test")["tiles"]
    assert (row["ledger"], row["fault"]) == ("test", None)
    assert row["size"] >= made["size"]
    folder = team.dev.data_dir / "tiles" / made["origin"]
    lineage = made["origin"].rpartition("/")[2]
    url = f"{team.dev.facts['public_url']}/log/test/{lineage}/checkpoint"
    served = httpx.get(url, timeout=PATIENCE_SECONDS, verify=NO_TLS)
    assert served.content == (folder / "checkpoint").read_bytes()


def events_of(team, ledger: str) -> int:
    """Return how many events a ledger has."""
    with psycopg.connect(team.dev.facts["database_url"]) as connection:
        count = f"select count(*) from {ledger}.events"  # noqa: S608 - ours
        return connection.execute(count).fetchone()[0]


def test_a_checkpoint_without_new_events_repeats_the_last(team):
    """The same checkpoint is returned and not new; a single ledger can be chosen."""
    first = team.do("audit", "checkpoint", "--ledger", "test")["checkpoints"]
    again = team.do("audit", "checkpoint", "--ledger", "test")["checkpoints"]
    assert again == [first[0] | {"is_new": False}]
    assert team.raw("audit", "checkpoint", "--ledger", "other").returncode == 2


def test_the_signing_key_is_kept(team):
    """The key is generated once and stored beside the master key."""
    kept = json.loads((team.dev.data_dir / "secrets.json").read_text())
    ring = team.do("audit", "public-key")["keys"]
    key = NoteKey.parse(kept["checkpoint_keys"])
    assert ring == [{"name": key.name, "public_key": key.public_text}]


def test_an_older_directory_gets_a_key(tmp_path):
    """An older directory keeps what it has and gets a key once."""
    write_private(tmp_path / "secrets.json", {"master_keys": "x", "seeded": {"a": 1}})
    first = kept_secrets(tmp_path)
    assert (first["master_keys"], first["seeded"]) == ("x", {"a": 1})
    assert NoteKey.parse(first["checkpoint_keys"]).can_sign
    assert kept_secrets(tmp_path) == first


def test_an_unneeded_lineage_is_refused(team):
    """The refusal says how to force it."""
    team.do("audit", "checkpoint")
    done = team.raw("audit", "lineage", "--reason", "none", "--ledger", "test", "--yes")
    assert done.returncode == 1
    assert "nothing is lost" in done.stderr
    assert "--force" in done.stderr
    done = team.raw("audit", "lineage", "--reason", "none")
    assert (done.returncode, done.stdout) == (1, "")
    assert team.raw("audit", "lineage", "--reason", " ", "--force").returncode == 2
    assert team.raw("audit", "lineage").returncode == 2


def test_lost_events_are_reported_and_a_lineage_goes_on(team):
    """The command reports lost events with exit code 1, and `audit lineage` recovers from it."""
    before = team.do("audit", "checkpoint", "--ledger", "test")["checkpoints"][0]
    key = NoteKey.parse(
        json.loads((team.dev.data_dir / "secrets.json").read_text())["checkpoint_keys"]
    )
    ahead = Checkpoint(before["origin"], before["size"] + 1000, bytes(32))
    folder = published(team) / "checkpoints" / before["origin"]
    (folder / f"{ahead.size:020}.txt").write_text(ahead.sign(key))

    code, answer = team.answer("audit", "checkpoint")
    assert code == 1
    faults = {one["ledger"]: one["fault"] for one in answer["checkpoints"]}
    assert (faults["accounts"], faults["live"]) == (None, None)
    assert faults["test"] == (
        f"a checkpoint of {ahead.size:,} events was published, the log has {before['size']:,}"
    )

    begin_lineage = ("audit", "lineage", "--reason", "a restore")
    unasked = team.raw(*begin_lineage)
    assert (unasked.returncode, unasked.stdout) == (2, "")
    assert "--yes" in unasked.stderr
    code, said = answered([*begin_lineage, "--data-dir", team.dev.data_dir], "n\n", environment())
    assert code != 0
    assert f"a new lineage of test, published for good to {published(team).as_uri()}?" in said
    assert team.answer("audit", "checkpoint", "--ledger", "test")[0] == 1  # nothing was begun
    answer = team.do(*begin_lineage, "--yes")
    (row,) = answer["lineages"]
    assert (row["ledger"], row["shared_size"]) == ("test", before["size"])
    assert (row["previous_origin"], row["previous_size"]) == (ahead.origin, ahead.size)
    assert row["size"] == before["size"] + 1
    assert row["origin"] != before["origin"]
    assert answer["mails_settled"] == 0
    after = team.do("audit", "checkpoint", "--ledger", "test")["checkpoints"][0]
    assert (after["origin"], after["is_new"]) == (row["origin"], False)


def of_the_dev(team, **given: str) -> dict[str, str]:
    """Return an environment for the dev's database."""
    return team.dev.environment(**given)


def test_a_checkpoint_without_keys_is_refused(team):
    """One line says what to do."""
    done = run("audit", "checkpoint", env=of_the_dev(team))
    assert (done.returncode, done.stdout) == (1, "")
    assert "CLAIM_LEDGER_CHECKPOINT_KEYS" in done.stderr
    assert run("audit", "public-key", "--json", env=of_the_dev(team)).stdout == '{"keys": []}\n'


def test_an_unreachable_archive_is_named(team, tmp_path):
    """The refusal names the archive's location."""
    team.do("audit", "checkpoint")
    kept = json.loads((team.dev.data_dir / "secrets.json").read_text())
    (tmp_path / "file").write_text("")
    place = (tmp_path / "file" / "published").as_uri()
    env = of_the_dev(team, CHECKPOINT_KEYS=kept["checkpoint_keys"], ARCHIVE_URL=place)
    done = run("audit", "checkpoint", "--json", env=env)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["code"]) == (1, "service_unavailable")
    assert f"{tmp_path}/file/published" in answer["message"]
