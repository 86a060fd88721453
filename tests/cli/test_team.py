"""The commands of the service's team, as processes on a running dev, with their JSON answers."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from tests.cli.team import mailbox
from tests.dev_process import until
from tests.world import claim_body

COMPLETED_BY = """
select convert_from(state, 'UTF8')::jsonb -> 'meta' ->> 'actor' from live.events
where topic = 'OnboardingCompleted'
    and convert_from(state, 'UTF8')::jsonb -> 'data' ->> 'onboarding_id' = %s
"""
UNKNOWN_PARTNER = "ptn_00000000000000000000000000"


def test_a_partner_from_application_to_revocation(team):
    """Each step prints id and status and appends one event; repeating it appends none."""
    before = team.events()
    added = team.do("partners", "add", "Umlaut Ä GmbH", "--email", mailbox())
    partner_id = added["partner_id"]
    pending_key = team.refused("keys", "issue", partner_id, "--mode", "live")
    statuses = [
        team.do("partners", verb, partner_id)["status"]
        for verb in ("decline", "decline", "approve", "approve")
    ]
    verified = team.do("partners", "website", partner_id, "--verified", "https://Example.com/")
    statuses += [
        team.do("partners", verb, partner_id)["status"] for verb in ("show", "revoke", "revoke")
    ]
    listed = {one["partner_id"]: one for one in team.do("partners", "list")["partners"]}
    assert (added["status"], pending_key) == ("pending", "auth_partner_not_approved")
    assert statuses == ["declined"] * 2 + ["approved"] * 3 + ["revoked"] * 2
    assert listed[partner_id]["name"] == "Umlaut Ä GmbH"
    assert listed[partner_id]["status"] == "revoked"
    assert team.refused("partners", "approve", partner_id) == "partner_state"
    assert verified == listed[partner_id] | {
        "status": "approved",
        "verified_website": "example.com",
    }
    # applied, declined, approved, website, revoked; three fixture entities and three connections
    assert team.events() - before == 5 + 6


def test_commands_repeated_with_a_reference_make_nothing_twice(team):
    """They return what the first one made, or name the key whose token was shown."""
    address, business, before = mailbox(), mailbox(), team.events()
    added = [
        team.do("partners", "add", "P", "--email", address, "--once", f"ref {address}")
        for _ in range(2)
    ]
    assert added[0] == added[1]
    partner_id = added[0]["partner_id"]
    entities = [
        team.do("entities", "add", "B", "--email", business, "--once", f"ref {business}")
        for _ in range(2)
    ]
    assert entities[0] == entities[1]
    assert team.events() - before == 2
    team.do("partners", "approve", partner_id)
    issue = ("keys", "issue", partner_id, "--mode", "live", "--name", "Server", "--once", "ref")
    issued = team.do(*issue)
    code, answer = team.answer(*issue)
    assert (code, answer["code"]) == (1, "key_state")
    assert issued["key_id"] in answer["message"]
    assert issued["name"] == "Server"
    assert team.raw(*issue[:-1], " ").returncode == 2


def test_partner_settings_change_one_at_a_time(team):
    """Settings are off at first; those that are not named keep their value."""
    partner_id = team.do("partners", "add", "P", "--email", mailbox())["partner_id"]
    shown = [
        team.do("partners", "set", partner_id, *options)
        for options in ((), ("--return-link",), ("--suppress-email",), ("--no-return-link",))
    ]
    assert [(one["return_link"], one["suppress_email"]) for one in shown] == [
        (False, False),
        (True, False),
        (True, True),
        (False, True),
    ]


def test_keys_work_until_revoked(team):
    """A token is shown once and works until revocation; a test key names its sandbox."""
    partner_id, _, _ = team.partner()
    before = team.events()
    live, test = (team.do("keys", "issue", partner_id, "--mode", mode) for mode in ("live", "test"))
    works = team.call(
        test["token"],
        "GET",
        "/claims",
        params={"entity_id": test["sandbox"]["connected_entity_id"]},
    )
    listed = team.do("keys", "list", partner_id)["keys"]
    revoked = team.do("keys", "revoke", live["key_id"])
    rejected = team.call(live["token"], "GET", "/claims", params={"entity_id": "x"})
    assert (live["mode"], "sandbox" in live, test["mode"]) == ("live", False, "test")
    assert works.status_code == 200
    assert {live["key_id"], test["key_id"]} <= {one["key_id"] for one in listed}
    assert [one for one in listed if "token" in one] == []
    assert next(one for one in listed if one["mode"] == "test")["sandbox"] == test["sandbox"]
    assert (revoked["key_id"], revoked["mode"]) == (live["key_id"], "live")
    assert rejected.json()["code"] == "auth_revoked"
    assert team.events() - before == 3


def test_an_altered_row_keeps_no_key_from_being_revoked(team):
    """Whose key it is says the log, and so do the lists of keys."""
    partner_id, live, test = team.partner()
    keys = [token.split(".")[1] for token in (live, test)]
    with psycopg.connect(team.dev.facts["database_url"], autocommit=True) as owner:
        for key_id, column in zip(keys, ("partner_id", "key_id"), strict=True):
            owner.execute(
                f"update accounts.api_keys set {column} = %s where key_id = %s",  # noqa: S608 - ours
                [f"{UNKNOWN_PARTNER}{key_id}", key_id],
            )
    listed = team.do("keys", "list", partner_id)["keys"]
    answers = [team.do("keys", "revoke", key_id) for key_id in keys]
    revoked = [answer["key_id"] for answer in answers if answer["revoked"]]
    rejected = team.call(live, "GET", "/claims", params={"entity_id": "x"})
    assert [one["key_id"] for one in listed] == revoked == keys
    assert rejected.json()["code"] == "auth_revoked"
    team.do("projections", "rebuild", "partners")  # others share this dev


def test_a_customer_connects_and_disconnects(team):
    """The printed link connects an entity once; after disconnection claims are refused."""
    partner_id, live, _ = team.partner()
    entity_id = team.entity()
    link = team.link(live)
    before = team.events()
    approved = team.do("connect", "approve", link, "--entity", entity_id)
    created = team.call(live, "POST", "/claims", json=claim_body(entity_id))
    gone = team.do("entities", "disconnect", entity_id, "--partner", partner_id)
    again = team.do("entities", "disconnect", entity_id, "--partner", partner_id)
    refused = team.call(live, "POST", "/claims", json=claim_body(entity_id, "case-2"))
    assert approved == {"entity_id": entity_id, "partner_id": partner_id}
    assert created.status_code == 201
    assert gone["connections"][0]["partner_id"] == partner_id
    assert gone["connections"][0]["disconnected_at"] is not None
    assert gone == again == team.do("entities", "show", entity_id)
    assert refused.json()["code"] == "partner_disconnected"
    assert team.events() - before == 4  # redeemed, connected, claim created, disconnected


def test_a_delayed_command_ends_no_later_connection(team):
    """With the version that it was shown, a repetition is refused once it began again."""
    partner_id, live, _ = team.partner()
    entity_id = team.entity()
    team.connect(team.link(live), entity_id)
    (connection,) = team.do("entities", "show", entity_id)["connections"]
    version = str(connection["version"])
    end = ("entities", "disconnect", entity_id, "--partner", partner_id, "--if-version", version)
    gone, again = team.do(*end), team.do(*end)
    team.connect(team.link(live), entity_id)
    before = team.events()
    assert gone == again
    assert team.refused(*end) == "form_outdated"
    assert team.events() == before
    assert team.do("entities", "show", entity_id)["connections"][0]["disconnected_at"] is None


def test_unusable_links_are_refused_with_their_code(team, demo):
    """Used, declined, expired, test and garbage links get the contract's codes."""
    partner_id, live, test = team.partner()
    entity_id = demo["entity_id"]
    used, declined, expired, mine = (team.link(live) for _ in range(4))
    team.connect(used, entity_id)
    assert team.do("connect", "decline", declined)["state"] == "declined"
    with psycopg.connect(demo["database_url"]) as connection:
        connection.execute(
            "update live.connect_links set expires_at = now() - interval '1 second'"
            " where token_hash = sha256(%s)",
            [expired.rpartition("/")[2].encode()],
        )
    approvals = [used, declined, expired, mine, team.link(test), "http://[", "", "x/y?z"]
    with ThreadPoolExecutor(4) as pool:
        codes = list(
            pool.map(
                lambda link: team.refused("connect", "approve", link, "--entity", entity_id),
                approvals,
            )
        )
    assert codes == [
        "connect_token_already_redeemed",
        "connect_token_invalid",
        "connect_token_expired",
        "entity_already_linked",
        *["connect_token_invalid"] * 4,
    ]
    assert team.refused("connect", "approve", mine, "--entity", "ent_x") == "entity_not_found"
    team.do("projections", "rebuild", "connect_links", "--ledger", "live")  # others share this dev
    assert team.refused("connect", "decline", used) == "connect_token_already_redeemed"
    assert partner_id in str(team.do("entities", "show", entity_id))


def test_an_onboarding_is_completed_by_the_mailed_link(team, demo):
    """The mailed link works once and connects the entity; nothing is sent twice."""
    partner_id, live, test = team.partner()
    body = {"partner_user_id": "u-1", "company_name": "C", "user_email": mailbox()}
    started = team.call(live, "POST", "/onboardings", json=body).json()["onboarding_id"]
    sandboxed = team.call(test, "POST", "/onboardings", json=body).json()["onboarding_id"]
    before = team.do("onboardings", "show", started)
    link = _mailed_link(Path(demo["mail_dir"]), body["user_email"])
    completed = team.do("onboardings", "complete", link)
    with psycopg.connect(demo["database_url"]) as connection:
        ((actor,),) = connection.execute(COMPLETED_BY, [before["onboarding_id"]]).fetchall()
    assert actor.startswith("staff:stf_")
    in_test = team.do("onboardings", "show", sandboxed, "--mode", "test")
    assert (before["state"], before["partner_id"]) == ("started", partner_id)
    assert (completed["onboarding_id"], completed["state"]) == (started, "completed")
    assert completed["entity_id"] == before["entity_id"]
    assert in_test["entity_id"] not in {None, before["entity_id"]}
    assert team.refused("onboardings", "complete", link) == "magic_link_already_used"
    assert team.refused("onboardings", "complete", "http://x/y") == "magic_link_invalid"
    assert team.refused("onboardings", "show", sandboxed) == "onboarding_not_found"
    created = team.call(live, "POST", "/claims", json=claim_body(completed["entity_id"]))
    assert created.status_code == 201


def test_a_claim_moves_through_stages(team, demo):
    """A claim is shown as its events describe it; an unknown stage changes nothing."""
    body = claim_body(demo["entity_id"], "to-move", message="esc \x1b[31m")
    claim_id = team.call(demo["live_key"], "POST", "/claims", json=body).json()["claim_id"]
    before = team.events()
    shown = team.do("claims", "show", claim_id)
    code, refusal = team.answer("claims", "move", claim_id, "limbo")
    stages = re.findall(r"'([a-z_]+)'", refusal["message"])[1:]
    moved = team.do("claims", "move", claim_id, stages[-1])
    assert (shown["claim_id"], shown["stage"]) == (claim_id, "triage")
    assert (code, refusal["code"]) == (2, "validation_failed")
    # Moved once, and opened twice: what is printed has the claim's personal data.
    assert (moved["stage"], team.events() - before) == (stages[-1], 1 + 2)
    shown = team.do("claims", "show", claim_id)
    assert shown.pop("rests_on").keys() == {"origin", "size", "unsigned_events"}
    assert shown == moved
    # For people: what a partner wrote may not steer the terminal.
    assert "\x1b" not in team.raw("claims", "show", claim_id).stdout


def test_the_running_dev_numbers_what_commands_append(team, demo):
    """Commands have no sequencer: dev's own gives each event its position without a gap."""
    team.do("partners", "add", "P", "--email", mailbox())
    counts = """
        select (select count(*) from {0}.pending), (select count(*) from {0}.events),
               (select count(*) from {0}.log), (select max(position) from {0}.log)
    """
    with psycopg.connect(demo["database_url"], autocommit=True) as connection:
        for ledger in ("accounts", "live", "test"):
            statement = counts.format(ledger)
            until(lambda statement=statement: connection.execute(statement).fetchall()[0][0] == 0)
            ((_, events, numbered, last),) = connection.execute(statement).fetchall()
            assert events == numbered == last


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["partners", "show", UNKNOWN_PARTNER], "partner_not_found"),
        (["partners", "approve", "x"], "partner_not_found"),
        (["partners", "set", "x", "--return-link"], "partner_not_found"),
        (["keys", "issue", "x", "--mode", "test"], "partner_not_found"),
        (["keys", "list", "x"], "partner_not_found"),
        (["keys", "revoke", "x"], "key_not_found"),
        (["entities", "show", "x"], "entity_not_found"),
        (["entities", "disconnect", "x", "--partner", "y"], "entity_not_found"),
        (["onboardings", "show", "x", "--mode", "test"], "onboarding_not_found"),
        (["claims", "show", "x"], "claim_not_found"),
        (["claims", "move", "x", "triage"], "claim_not_found"),
        (["partners", "add", "", "--email", "a@example.com"], "validation_failed"),
        (["partners", "add", "P", "--email", "no address"], "validation_failed"),
        (["entities", "add", "", "--email", ""], "validation_failed"),
        (["entities", "add", "x" * 300, "--email", "a@example.com"], "validation_failed"),
        (["partners", "show", b"\xff\xfe"], "validation_failed"),
        (["partners", "add", b"\xed\xa0\x80", "--email", "a@example.com"], "validation_failed"),
    ],
)
def test_bad_input_is_refused(team, arguments, code):
    """Unknown ids, empty names, malformed addresses and non-text bytes get an envelope."""
    assert team.refused(*arguments) == code


def test_every_faulty_argument_is_named(team):
    """`details` lists each faulty argument by its name."""
    _, answer = team.answer("entities", "add", "", "--email", "nobody")
    assert set(answer["details"]["fieldErrors"]) == {"name", "email"}


def test_one_address_may_have_several_businesses(team):
    """Staff can insist on it; a company number always belongs to one business."""
    add = ["entities", "add", "Bakery", "--email", mailbox(), "--company-number", mailbox()]
    one = team.do(*add)
    assert team.refused(*add[:5]) == "onboarding_unavailable"
    assert team.do(*add[:5], "--another")["entity_id"] != one["entity_id"]
    code, taken = team.answer(*add, "--another")
    assert (code, taken["code"]) == (1, "onboarding_unavailable")
    assert "this company number uses the service" in taken["message"]  # not: try --another


@pytest.mark.parametrize(
    "arguments",
    [
        ["partners", "add"],
        ["partners", "add", "P"],
        ["keys", "issue", "x", "--mode", "both"],
        ["claims", "fly", "x"],
        ["onboardings", "complete"],
    ],
)
def test_usage_errors_are_json_with_json(team, arguments):
    """With `--json` usage errors are envelopes on stdout; the exit code is 2."""
    code, answer = team.answer(*arguments)
    assert (code, answer["code"]) == (2, "validation_failed")


def test_people_get_text(team, demo):
    """Without `--json` answers are aligned text, and a refusal is a line on stderr."""
    listed = team.raw("partners", "list")
    key = team.raw("keys", "issue", demo["partner_id"], "--mode", "test")
    refused = team.raw("partners", "show", "x")
    assert demo["partner_id"] in listed.stdout
    assert re.search(r"^token +pk_test_\S{100,}$", key.stdout, re.MULTILINE)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == "Refused: No such partner. (partner_not_found)\n"


def _mailed_link(mail_dir: Path, address: str) -> str:
    def mine() -> list[str]:
        return [text for mail in mail_dir.glob("*.eml") if address in (text := mail.read_text())]

    until(lambda: mine() != [])
    found = re.search(r"http://\S+/onboarding/\S+", mine()[0].replace("=\n", ""))
    assert found
    return found[0]
