"""Unreadable events: every command names the event, and none crashes."""

import asyncio
import json

import psycopg
import pytest

from tests.dev_process import environment, run
from tests.projections.history import number_all
from tests.world import MASTER_KEY, PUBLIC_URL, STAFF, TEAM

pytestmark = pytest.mark.followed

SWAPPED = """
alter table live.events disable trigger user;
update live.events set state = (
    select state from live.events where topic = 'ClaimStageChanged' limit 1
) where topic = 'ClaimCreated';
alter table live.events enable always trigger append_only;
"""
PLACE = "select position from live.log join live.events using (append_id) where topic = %s"


@pytest.fixture
async def damaged(world, database_url):
    """Return (run a command, claim id, position): the claim's first event has a wrong topic.

    So that the command line sees what an operator would see, it is run as a process.
    """
    await world.service.staff.add(TEAM, STAFF)
    partner, entity_id = await world.connected()
    claim_id = (await partner.claim(entity_id)).json()["claim_id"]
    await world.service.modes["live"].claims.move(claim_id, "negotiation", STAFF)
    await number_all(world.service.modes["live"].ledger)
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute(SWAPPED)
        (position,) = owner.execute(PLACE, ["ClaimCreated"]).fetchone()
    env = environment(
        DATABASE_URL=database_url, MASTER_KEYS=MASTER_KEY, PUBLIC_URL=PUBLIC_URL, STAFF=TEAM
    )

    async def running(*arguments):
        return await asyncio.to_thread(run, *arguments, env=env)

    return running, claim_id, position


async def test_each_command_names_the_unreadable_event(damaged):
    """One line, exit code 1, no content of the event; earlier positions can be replayed."""
    run, claim_id, position = damaged
    unread = f"Error: position {position} of live cannot be read: its data are not those of"
    altered = (
        f"Error: the ledger live cannot be replayed: position {position}: the event is not the one "
        "that was hashed there"
    )
    for arguments, place in (
        (("audit", "replay"), altered),
        (("audit", "replay", "--independent"), altered),
        (("audit", "replay", "--at", "2999-01-01T00:00:00Z"), altered),
        (("projections", "rebuild", "claim_list", "--ledger", "live"), unread),
    ):
        done = await run(*arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
        assert done.stderr.startswith(place)
    shown = await run("claims", "show", claim_id)
    assert (shown.returncode, shown.stdout, shown.stderr.count("\n")) == (1, "", 1)
    assert (
        "the event is not the one that was hashed there; `audit verify` shows more" in shown.stderr
    )
    before = await run("audit", "replay", "--position", str(position - 1), "--json")
    assert (before.returncode, json.loads(before.stdout)["claims"]) == (0, [])


async def test_verify_and_find_continue_past_an_unreadable_event(damaged):
    """They process the readable events, list the unreadable ones, and exit with 1."""
    run, _, position = damaged
    verified = await run("projections", "verify", "--ledger", "live", "--json")
    answer = json.loads(verified.stdout)
    assert (verified.returncode, verified.stderr) == (1, "")
    assert {row["name"] for row in answer["verified"]} >= {"claim_list", "connections", "activity"}
    assert {(row["name"], row["position"]) for row in answer["put_aside"]} >= {
        ("claim_list", position)
    }
    assert ("claim_list", "surplus") in {
        (row["name"], row["fault"]) for row in answer["differences"]
    }
    found = await run("privacy", "find", "b1@example.com", "--json")
    (unread,) = json.loads(found.stdout)["unread"]
    assert (found.returncode, found.stderr) == (1, "")
    assert (unread["ledger"], unread["position"], unread["version"]) == ("live", position, 1)
