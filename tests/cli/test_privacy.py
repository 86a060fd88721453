"""`claim-ledger privacy` and `keys-at-rest`, on a running dev."""

import json
from datetime import datetime

import psycopg
import pytest

from service.core.clock import timestamp
from service.privacy.faulty_keys import REVIVED
from tests.cli.team import Team, mailbox
from tests.cli.uploads import Upload, elsewhere
from tests.dev_process import environment, run
from tests.terminal import answered, interrupted
from tests.world import claim_body

CANARY = "canary-Zoë"
DRAWN = """
select event -> 'meta' ->> 'actor', event -> 'data'
from accounts.events, lateral (select convert_from(state, 'UTF8')::jsonb as event) as opened
where topic = 'EventKeyAdded'
"""


def claim_about(team: Team, demo, email: str, reference: str) -> str:
    """Create a claim of the demonstration that contains an address; return its id."""
    body = claim_body(
        demo["entity_id"], reference, message=f"{CANARY}: {email}", defendant={"name": CANARY}
    )
    answer = team.call(demo["live_key"], "POST", "/claims", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["claim_id"]


def entries(team: Team) -> list[str]:
    """Return the names of the entries in the erasure list."""
    return sorted(path.name for path in (team.dev.data_dir / "published").rglob("erasures/*/*"))


def test_personal_data_is_found_erased_and_gone(team, demo):
    """Data is found and erased; erasing again returns the same result and appends nothing."""
    email, reference = mailbox(), mailbox().partition("@")[0]
    claim_id = claim_about(team, demo, email, reference)
    found = team.do("privacy", "find", email.upper())
    erased = team.do("privacy", "erase", "--claim", claim_id, "--reason", "case 7", "--yes")
    events = team.events()
    again = team.do("privacy", "erase", "--claim", claim_id, "--reason", "again", "--yes")
    assert [(one["topic"], one["field"]) for one in found["found"]] == [
        ("FirstMessagePosted", "text")
    ]
    assert [one["subject"] for one in found["found"]] == [claim_id]
    assert email not in json.dumps(found).casefold()
    assert (erased["already_erased"], erased["keys_destroyed"]) == (False, 1)
    assert (again["already_erased"], again["reason"], again["erased_at"]) == (
        True,
        "case 7",
        erased["erased_at"],
    )
    assert (team.events(), team.do("privacy", "find", email)["places"]) == (events, 0)
    assert sum(claim_id in name for name in entries(team)) == 1
    shown = team.do("claims", "show", claim_id)
    assert set(shown["rests_on"]) == {"origin", "size", "unsigned_events"}
    assert (shown["erased"], shown["personal"], shown["message"]) == (True, "erased", "[erased]")
    assert "defendant" not in shown
    body = claim_body(demo["entity_id"], reference)
    replay = team.call(demo["live_key"], "POST", "/claims", json=body)
    assert (replay.status_code, replay.json()["claim_id"]) == (200, claim_id)
    assert team.do("claims", "move", claim_id, "closed")["stage"] == "closed"


def test_what_is_held_on_a_subject_is_copied(team, tmp_path):
    """By its own key: a claim's debtor is not in the copy of an entity; and erased data is none."""
    email, reference = mailbox(), mailbox().partition("@")[0]
    entity_id = team.entity(f"{CANARY} Ltd", email)
    _, live, _ = team.partner()
    link = team.call(
        live, "POST", "/connect-requests", json={"partner_user_id": "u", "label": f"of {CANARY}"}
    )
    team.connect(link.json()["connect_url"], entity_id)
    body = claim_body(entity_id, reference, message="Pay me", defendant={"name": "Debtor"})
    claim_id = team.call(live, "POST", "/claims", json=body).json()["claim_id"]
    copies = {}
    for kind, subject in (("entity", entity_id), ("claim", claim_id)):
        out = tmp_path / f"{kind}.json"
        done = team.do("privacy", "copy", f"--{kind}", subject, "--out", out)
        copies[kind] = json.loads(out.read_bytes())
        assert (done["events"], out.stat().st_mode & 0o777) == (2, 0o600)
        assert copies[kind][f"{kind}_id"] == subject
    held = {
        kind: [(one["event"], one["fields"]) for one in copies[kind]["events"]] for kind in copies
    }
    assert held["entity"] == [
        ("EntityRegistered", {"name": f"{CANARY} Ltd", "email": email}),
        ("ConnectLinkIssued", {"label": f"of {CANARY}"}),
    ]
    (created, details), (posted, text) = held["claim"]
    assert (created, details["details"]["defendant"]["name"]) == ("ClaimCreated", "Debtor")
    assert (posted, text) == ("FirstMessagePosted", {"text": "Pay me"})
    team.do("privacy", "erase", "--claim", claim_id, "--reason", "case 8", "--yes")
    out = tmp_path / "erased.json"
    code, answer = team.answer("privacy", "copy", "--claim", claim_id, "--out", out)
    assert (code, answer["message"]) == (1, f"{claim_id}: its personal data was erased")
    assert not out.exists()


def test_an_entity_is_erased_with_its_claims_if_asked(team):
    """Claims are listed and kept; with --with-claims each is erased by its own event."""
    email = mailbox()
    entity_id = team.entity("Canary Ltd", email)
    _, live, _ = team.partner()
    team.connect(team.link(live), entity_id)
    claim = team.call(live, "POST", "/claims", json=claim_body(entity_id)).json()["claim_id"]
    erase = ("privacy", "erase", "--entity", entity_id, "--reason", "case 8", "--yes")
    alone = team.do(*erase)
    whole = team.do(*erase, "--with-claims")
    assert alone["claims"] == [{"claim_id": claim, "stage": "triage", "erased": False}]
    assert whole["claims"] == [{"claim_id": claim, "stage": "triage", "erased": True}]
    assert (alone["already_erased"], whole["already_erased"]) == (False, True)
    assert team.do("entities", "show", entity_id)["name"] == "[erased]"
    assert team.entity("Canary Ltd", email) != entity_id


def test_whoever_a_label_names_is_found_and_erased_by_the_links_id(team):
    """By a part of their name: the link has no address, and no business has redeemed it."""
    name = f"{CANARY} {mailbox().partition('@')[0]}"
    _, live, _ = team.partner()
    body = {"partner_user_id": "u", "label": f"for {name} & sons"}
    assert team.call(live, "POST", "/connect-requests", json=body).status_code == 201
    (place,) = team.do("privacy", "find", "--text", name.upper())["found"]
    erased = team.do(
        *("privacy", "erase", "--link", place["subject"], "--reason", "case 8", "--yes")
    )
    assert (place["topic"], place["field"], place["is_sealed"]) == (
        "ConnectLinkIssued",
        "label",
        True,
    )
    assert (erased["link_id"], erased["keys_destroyed"]) == (place["subject"], 1)
    assert team.do("privacy", "find", "--text", name)["places"] == 0


def test_an_erased_document_is_no_finding(team, demo):
    """It counts as erased, and its object answers 404."""
    upload = Upload(team, demo).put()
    claim_id = upload.claim().json()["claim_id"]
    before = team.answer("documents", "verify")[1]["erased"]
    erased = team.do("privacy", "erase", "--claim", claim_id, "--reason", "case 9", "--yes")
    after = team.answer("documents", "verify")[1]
    assert (erased["objects"], erased["objects_left"], upload.object()) == (1, 0, 404)
    assert after["erased"] == before + 1
    assert claim_id not in {one["claim_id"] for one in after["findings"]}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["erase", "--claim", "clm_none", "--reason", "x", "--yes"], "claim_not_found"),
        (["erase", "--entity", "ent_none", "--reason", "x", "--yes"], "entity_not_found"),
        (["erase", "--staff", "stf_none", "--reason", "x", "--yes"], "staff_not_found"),
        (["erase", "--link", "lnk_none", "--reason", "x", "--yes"], "link_not_found"),
        (["erase", "--claim", "x", "--reason", "  ", "--yes"], "validation_failed"),
        (["erase", "--claim", "x", "--reason", "x" * 501, "--yes"], "validation_failed"),
        (["erase", "--claim", "x", "--reason", "for a@example.com", "--yes"], "validation_failed"),
        (["find", "nobody"], "validation_failed"),
        (["find", "--text", " x "], "validation_failed"),
        (["find", "--text", "x" * 501], "validation_failed"),
    ],
)
def test_invalid_erasures_are_refused(team, arguments, code):
    """Unknown subjects, missing reasons or reasons with names, and malformed addresses."""
    assert team.refused("privacy", *arguments) == code


@pytest.mark.parametrize(
    "arguments",
    [
        ["--reason", "x", "--yes"],
        ["--claim", "c", "--entity", "e", "--reason", "x", "--yes"],
        ["--claim", "c", "--with-claims", "--reason", "x", "--yes"],
        ["--link", "l", "--with-claims", "--reason", "x", "--yes"],
        ["--claim", "c", "--yes"],
    ],
)
def test_privacy_usage_errors_exit_with_2(team, arguments):
    """An erasure takes one subject and a reason, and --with-claims only an entity."""
    code, answer = team.answer("privacy", "erase", *arguments)
    assert (code, answer["code"]) == (2, "validation_failed")


def test_a_search_is_for_an_address_or_a_text(team):
    """Neither, or both, is a usage error."""
    for given in ([], ["a@example.com", "--text", "Zoe"]):
        assert team.answer("privacy", "find", *given)[0] == 2


def test_a_program_has_to_pass_yes(team, demo):
    """Without --yes and without a terminal nothing is erased."""
    claim_id = claim_about(team, demo, mailbox(), mailbox().partition("@")[0])
    code, answer = team.answer("privacy", "erase", "--claim", claim_id, "--reason", "x")
    assert (code, "--yes" in answer["message"]) == (2, True)
    assert team.personal(claim_id) == "readable"


@pytest.mark.parametrize(("typed", "erased", "code"), [("n\n", False, 130), ("y\n", True, 0)])
def test_a_person_is_asked(team, demo, typed, erased, code):
    """On a terminal the question names the subject; answering n erases nothing."""
    claim_id = claim_about(team, demo, mailbox(), mailbox().partition("@")[0])
    arguments = ["privacy", "erase", "--claim", claim_id, "--reason", "x"]
    ended, said = answered([*arguments, "--data-dir", team.dev.data_dir], typed, environment())
    assert 'The reason stays in the log and the archive forever: "x"' in said
    assert f"Permanently erase the personal data of {claim_id} (live)?" in said
    assert (ended, team.personal(claim_id) == "erased") == (code, erased)


def test_a_question_can_be_interrupted(team, demo):
    """By one Ctrl-C, though the event loop waits for the answer, too."""
    claim_id = claim_about(team, demo, mailbox(), mailbox().partition("@")[0])
    arguments = ["privacy", "erase", "--claim", claim_id, "--reason", "x"]
    code, said = interrupted([*arguments, "--data-dir", team.dev.data_dir], environment())
    assert (code, "Stopped. Goodbye." in said, "Traceback" in said) == (130, True, False)
    assert team.personal(claim_id) == "readable"


def test_without_a_list_nothing_is_erased(team, demo):
    """The message names the missing setting."""
    claim_id = claim_about(team, demo, mailbox(), mailbox().partition("@")[0])
    arguments = ["privacy", "erase", "--claim", claim_id, "--reason", "x", "--yes", "--json"]
    done = run(*arguments, env=elsewhere(team))
    assert done.returncode == 1
    assert "CLAIM_LEDGER_ARCHIVE_URL" in json.loads(done.stdout)["message"]
    assert team.personal(claim_id) == "readable"


def test_a_missing_list_directory_is_not_created(team, demo, tmp_path):
    """It is mistyped or not mounted: neither command creates it, and nothing is erased."""
    claim_id = claim_about(team, demo, mailbox(), mailbox().partition("@")[0])
    place = tmp_path / "mistyped"
    env = elsewhere(team, ARCHIVE_URL=place.as_uri())
    for arguments in (["erase", "--claim", claim_id, "--reason", "x", "--yes"], ["reapply"]):
        done = run("privacy", *arguments, "--json", env=env)
        assert done.returncode == 1
        message = json.loads(done.stdout)["message"]
        assert f"there is no directory {place}" in message
        assert f"mkdir -m 700 {place}" in message
    assert not place.exists()
    assert team.personal(claim_id) == "readable"


def test_logs_hold_neither_reason_nor_data(team, demo):
    """Logs of the commands and of dev name nobody."""
    email = mailbox()
    claim_id = claim_about(team, demo, email, mailbox().partition("@")[0])
    reason = "told-in-confidence"
    arguments = ["erase", "--claim", claim_id, "--reason", reason, "--yes"]
    found, erased = team.raw("privacy", "find", email), team.raw("privacy", *arguments)
    assert (found.returncode, erased.returncode) == (0, 0)
    said = found.stderr + erased.stderr + team.dev.printed
    assert not any(word in said for word in (email, reason, CANARY))


def test_reapplying_erases_what_came_back(team, demo, tmp_path):
    """Applied entries are shown as such; a restored key is destroyed again."""
    claim_id = claim_about(team, demo, mailbox(), mailbox().partition("@")[0])
    with psycopg.connect(demo["database_url"], autocommit=True) as owner:
        owner.execute("create table public.kept as select * from live.data_keys")
        team.do("privacy", "erase", "--claim", claim_id, "--reason", "case 10", "--yes")
        first = team.do("privacy", "reapply")
        owner.execute(
            "insert into live.data_keys select k.* from public.kept as k"
            " join live.claim_list as c on c.stream_id = k.key_id where c.claim_id = %s",
            [claim_id],
        )
        owner.execute("drop table public.kept")
    code, faulty = team.answer("keys-at-rest", "verify")
    assert (code, [one["fault"] for one in faulty["faulty_keys"]]) == (1, [REVIVED])
    shown = team.do("claims", "show", claim_id)
    assert (shown["personal"], shown["message"]) == ("erased", "[erased]")
    assert CANARY not in json.dumps(shown, ensure_ascii=False)
    second = team.do("privacy", "reapply")
    env = elsewhere(team, ARCHIVE_URL=tmp_path.as_uri())
    wrong = run("privacy", "reapply", "--json", env=env)
    assert (wrong.returncode, json.loads(wrong.stdout)["unlisted"] > 0) == (1, True)
    assert "erasures that the list does not have" in wrong.stderr
    asking = ["erase", "--claim", claim_id, "--reason", "x"]
    warned = run("privacy", *asking, env=env)  # it ends at the question, which comes after
    assert (warned.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "erasures that the list does not have" in warned.stderr
    assert "warning" not in team.raw("privacy", *asking).stderr
    (team.dev.data_dir / "published" / "erasures" / "live" / "stray.txt").write_text("")
    strayed = team.answer("privacy", "reapply")
    (team.dev.data_dir / "published" / "erasures" / "live" / "stray.txt").unlink()
    assert (strayed[0], strayed[1]["failed"], strayed[1]["unlisted"]) == (1, 1, 0)
    assert strayed[1]["faults"][0]["entry"] == "erasures/live/stray.txt"
    assert strayed[1]["listed"] == second["listed"] + 1
    assert (first["unlisted"], second["unlisted"]) == (0, 0)
    assert (first["applied"], first["listed"], first["absent"]) == ([], first["shown"], 0)
    assert [(one["subject"], one["keys_destroyed"]) for one in second["applied"]] == [(claim_id, 1)]


def test_a_key_that_the_database_keeps_is_said(team, demo):
    """The erasure and its repetition exit with 1; once nothing keeps the key, both succeed."""
    claim_id = claim_about(team, demo, mailbox(), mailbox().partition("@")[0])
    erase = ["privacy", "erase", "--claim", claim_id, "--reason", "case 11", "--yes"]
    with psycopg.connect(demo["database_url"], autocommit=True) as owner:
        owner.execute(
            "create function live.keep() returns trigger language plpgsql"
            " as $$begin return null; end$$"
        )
        owner.execute(
            "create trigger keep before delete on live.data_keys"
            " for each row execute function live.keep()"
        )
        refused = team.raw(*erase)
        code, reapplied = team.answer("privacy", "reapply")
        owner.execute("drop function live.keep cascade")
    assert refused.returncode == 1
    assert "the database did not destroy 1 of 1 keys" in refused.stderr
    assert (code, reapplied["keys_left"], reapplied["failed"]) == (1, 1, 1)
    assert team.do("privacy", "reapply")["keys_left"] == 0
    assert team.do(*erase)["already_erased"] is True


def test_a_list_of_nobodys_is_told_by_its_checkpoints(team, tmp_path):
    """A backup from before the first erasure shows none that an empty list would lack."""
    team.do("audit", "checkpoint")
    env = elsewhere(team, ARCHIVE_URL=tmp_path.as_uri())
    wrong, shown = (run("privacy", "reapply", *form, env=env) for form in (["--json"], []))
    assert json.loads(wrong.stdout)["unpublished"] == ["accounts", "live", "test"]
    assert shown.stdout.startswith("WRONG: the archive holds no checkpoint of accounts, live, test")
    assert (wrong.returncode, shown.returncode, list(tmp_path.iterdir())) == (1, 1, [])
    assert team.do("privacy", "reapply")["unpublished"] == []


def test_a_missing_key_is_said(team, demo):
    """Where nobody erased a claim and its key is gone, the command says so and exits with 1."""
    claim_id = claim_about(team, demo, mailbox(), mailbox().partition("@")[0])
    gone = (
        "with gone as (delete from live.data_keys as k using live.claim_list as c"
        " where c.stream_id = k.key_id and c.claim_id = %s returning k.*)"
        " select * from gone"
    )
    with psycopg.connect(demo["database_url"], autocommit=True) as owner:
        (row,) = owner.execute(gone, [claim_id]).fetchall()
        code, shown = team.answer("claims", "show", claim_id)
        owner.execute("insert into live.data_keys values (%s, %s, %s)", row)
    assert (code, shown["personal"], shown["message"]) == (1, "key missing", "[key missing]")
    assert team.do("claims", "show", claim_id)["personal"] == "readable"


def test_rotation_with_one_key_has_nothing_to_do(team):
    """With a single master key the command says that there is nothing to do."""
    answer = team.do("keys-at-rest", "rotate")
    assert (answer["unused"], answer["still_used"], answer["not_opened_by_ring"]) == ([], [], [])
    verified = team.do("keys-at-rest", "verify")
    assert [verified[name] for name in ("events_lost", "events_unfit", "keys_faulty")] == [0, 0, 0]
    assert {one["rewrapped"] for one in answer["tables"]} == {0}


def test_an_event_key_is_rotated(team):
    """Beside a service that runs, on record; a second time it has to wait, and records nothing."""
    answer = team.do("keys-at-rest", "rotate-event-key")
    assert (answer["event_key"], answer["signs_from"][-1]) == (2, "Z")
    refused = team.raw("keys-at-rest", "rotate-event-key")
    assert "event key 2 is new and does not sign yet" in refused.stderr
    with psycopg.connect(team.dev.facts["database_url"]) as owner:
        ((actor, said),) = owner.execute(DRAWN).fetchall()
    assert actor.startswith("staff:stf_")
    signs_from = timestamp(datetime.fromisoformat(said["signs_from"]))
    assert (said["event_key"], signs_from) == (2, answer["signs_from"])


def test_rotation_names_a_missing_key(team, demo):
    """A key that is not in the ring is named, with exit code 1; dev goes on."""
    env = elsewhere(team, MASTER_KEYS="AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=")
    done = run("keys-at-rest", "rotate", "--json", env=env)
    assert done.returncode == 1
    assert json.loads(done.stdout)["message"].startswith("CLAIM_LEDGER_MASTER_KEYS: ")
    claim_about(team, demo, mailbox(), mailbox().partition("@")[0])


def test_evidence_and_rebuilds_hold_afterwards(team, demo, tmp_path):
    """Earlier receipts hold, the log verifies; replay, rebuild and rollback show the erasure."""
    email, receipt = mailbox(), tmp_path / "receipt.json"
    entity_id = team.entity(CANARY, email)
    claim_id = claim_about(team, demo, email, email.partition("@")[0])
    team.do("audit", "prove", claim_id, "--out", str(receipt))
    public_key = team.do("audit", "public-key")["keys"][0]["public_key"]
    team.do("projections", "rebuild", "connections", "--ledger", "live")
    for subject in (("--claim", claim_id), ("--entity", entity_id)):
        team.do("privacy", "erase", *subject, "--reason", "case 11", "--yes")
    assert team.do("privacy", "find", email)["places"] == 0  # the rows that are kept, too
    assert run("audit", "check", str(receipt), "--public-key", public_key).returncode == 0
    assert team.do("audit", "verify", "--ledger", "live")["ok"]
    replayed = team.raw("audit", "replay", "--claim", claim_id, "--json")
    assert (replayed.returncode, CANARY in replayed.stdout) == (0, False)
    assert [one["subject"] for one in json.loads(replayed.stdout)["erased"]] == [claim_id]
    for command in ("verify", "rebuild", "rollback", "verify"):
        team.do("projections", command, "connections", "--ledger", "live")
        assert team.do("entities", "show", entity_id)["name"] == "[erased]"
        assert team.do("privacy", "find", email)["places"] == 0
