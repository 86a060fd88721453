"""`claim-ledger storage check`, `documents verify` and `documents sweep`, on a running dev."""

import json
import shutil
import subprocess
import sys

import pytest

from tests.cli.team import Team
from tests.cli.uploads import Upload, elsewhere
from tests.dev_process import environment, run
from tests.processes import free_port
from tests.terminal import watched

REFUSED = "the credentials are refused: is the key deleted, the account disabled?"


def failed(team: Team, **given: str) -> list[tuple[str, str, str]]:
    """Return the failed checks of `storage check` with these settings."""
    done = run("storage", "check", "--json", env=elsewhere(team, **given))
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["is_well"]) == (1, False)
    return [
        (one["mode"], one["check"], one["detail"])
        for one in answer["checks"]
        if one["result"] == "failed"
    ]


def test_a_sound_store_passes_every_check(team):
    """All checks of both modes pass, are explained in words, and leave nothing behind."""
    answer = team.do("storage", "check")
    told = team.raw("storage", "check").stdout
    assert answer["is_well"]
    assert {one["result"] for one in answer["checks"]} == {"ok"}
    assert [one["check"] for one in answer["checks"]] == [
        *("bucket", "roles", "cors", "deletion", "signing", "upload", "overwriting", "round trip")
    ] * 2
    assert "live  round trip   ok      uploaded, listed and deleted" in told


def test_storage_faults_are_explained(team, tmp_path):
    """An unreachable store, a missing bucket, a malformed key and a refused token are named."""
    away = f"http://127.0.0.1:{free_port()}"
    shutil.copy(team.dev.data_dir / "storage" / "service-account.json", tmp_path / "key.json")
    (tmp_path / "json-api-token").write_text("another")
    (tmp_path / "none.json").write_text("{")
    assert failed(team, STORAGE_ENDPOINT=away) == [
        ("live", "bucket", "claim-ledger-live: the store cannot be reached"),
        ("test", "bucket", "claim-ledger-test: the store cannot be reached"),
    ]
    assert failed(team, TEST_BUCKET="no-such-bucket") == [
        ("test", "bucket", "no-such-bucket: there is no bucket of this name")
    ]
    assert failed(team, STORAGE_KEY_FILE=str(tmp_path / "key.json")) == [
        ("live", "bucket", f"claim-ledger-live: {REFUSED}"),
        ("test", "bucket", f"claim-ledger-test: {REFUSED}"),
    ]
    (live, _) = failed(team, STORAGE_KEY_FILE=str(tmp_path / "none.json"))
    assert live[:2] == ("live", "credentials")
    assert live[2].startswith("cannot be used: JSONDecodeError")
    none = failed(team, LIVE_BUCKET="", TEST_BUCKET="", STORAGE_KEY_FILE="", STORAGE_ENDPOINT="")
    assert none[0] == ("live", "settings", "no bucket is set: documents are unavailable")


def test_a_malformed_key_affects_storage_alone(team, tmp_path):
    """Commands that need no storage do not read its key."""
    (tmp_path / "none.json").write_text("{")
    env = elsewhere(team, STORAGE_KEY_FILE=str(tmp_path / "none.json"))
    listed = run("partners", "list", "--json", env=env)
    swept = run("documents", "sweep", "--older-than", "9999d", "--json", env=env)
    assert (listed.returncode, "partners" in json.loads(listed.stdout)) == (0, True)
    assert swept.returncode == 0


def test_an_audit_finds_what_changed_and_what_is_missing(team, demo):
    """Linked documents are ok, replaced ones changed, deleted ones missing, with exit code 1."""
    upload, lost = Upload(team, demo).put(), Upload(team, demo).put()
    made, lost_made = upload.claim().json(), lost.claim().json()
    code, before = team.answer("documents", "verify")
    assert (code, before["findings"]) == (0, [])
    assert before["documents"] >= 2
    assert upload.object("DELETE") == lost.object("DELETE") == 204
    upload.put(b"%PDF-1.7 other")
    code, after = team.answer("documents", "verify")
    assert code == 1
    assert sorted(after["findings"], key=lambda one: one["fault"]) == [
        {
            "mode": "live",
            "fault": fault,
            "claim_id": claim["claim_id"],
            "document_id": claim["document_ids"][0],
            "storage_path": path,
        }
        for fault, claim, path in (
            ("changed", made, upload.path),
            ("missing", lost_made, lost.path),
        )
    ]


def test_an_audit_without_storage_is_no_finding(team, demo):
    """An unreachable store exits with 1 and the envelope of a 503."""
    Upload(team, demo).put().claim()
    env = elsewhere(team, STORAGE_ENDPOINT=f"http://127.0.0.1:{free_port()}")
    done = run("documents", "verify", "--json", env=env)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["code"]) == (1, "service_unavailable")
    assert "claim-ledger storage check" in answer["message"]


def test_a_sweep_deletes_old_unclaimed_uploads(team, demo):
    """A dry run changes nothing; a sweep deletes old uploads without a claim and no others."""
    linked, orphan = Upload(team, demo).put(), Upload(team, demo).put(b"%PDF-1.7 orphan").age()
    never_came, fresh = Upload(team, demo).age(), Upload(team, demo).put()
    assert linked.claim().status_code == 201
    linked.age()
    counts = {"mode": "live", "uploads": 2, "objects": 1, "bytes": 15, "kept": 0, "set_aside": 0}
    dry = team.do("documents", "sweep", "--older-than", "7d", "--dry-run")
    assert (dry["dry_run"], dry["modes"][0], orphan.object()) == (True, counts, 200)
    swept = team.do("documents", "sweep", "--older-than", "168h")
    again = team.do("documents", "sweep", "--older-than", "7d")
    assert (swept["dry_run"], swept["modes"][0]) == (False, counts)
    assert again["modes"][0] == counts | {"uploads": 0, "objects": 0, "bytes": 0}
    assert [one.object() for one in (orphan, linked, fresh)] == [404, 200, 200]
    assert [one.claim().json()["code"] for one in (orphan, never_came)] == [
        "document_not_uploaded"
    ] * 2
    assert fresh.claim().status_code == 201


@pytest.mark.parametrize("age", ["7", "5m", "0d", "0h", "-1d", "7 d", "\u0667d", ""])
def test_an_invalid_age_is_wrong_usage(team, age):
    """An age is in hours or days and at least an hour; otherwise nothing is swept."""
    code, answer = team.answer("documents", "sweep", f"--older-than={age}")
    assert (code, answer["code"]) == (2, "validation_failed")
    assert "expected hours or days, at least 1h" in answer["message"]


def test_a_person_sees_a_bar(team, demo):
    """On a terminal stderr shows a progress bar; in a pipe it shows nothing."""
    Upload(team, demo).put().age()
    arguments = ["documents", "sweep", "--older-than", "7d", "--data-dir", team.dev.data_dir]
    shown = watched(arguments, environment())
    assert "sweeping live" in shown
    assert "100%" in shown
    Upload(team, demo).put().age()
    assert run(*map(str, arguments)).stderr == ""


def test_other_commands_do_without_the_clouds_client(team):
    """Importing it takes longer than most commands run."""
    told = (
        "import sys; from service.cli import cli;"
        f"cli.main(['partners', 'list', '--data-dir', {str(team.dev.data_dir)!r}],"
        " standalone_mode=False); print([name for name in sys.modules if name[:7] == 'google.'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True, env=environment()
    )
    assert done.stdout.splitlines()[-1] == "[]"
