"""Events of somebody who could not act, and how many of them an operator has explained."""

import json
import re
from uuid import uuid4

import psycopg
import pytest

from service.evidence.verify.people import People
from service.evidence.verify.slices import Slices
from service.facts.claims import ClaimStageChanged
from service.ledger.events import Cause
from service.ledger.sequencer import Sequencer
from service.ledger.writing import Append
from tests.dev_process import environment, run
from tests.evidence.checkpointing import KEY
from tests.world import MASTER_KEY, PUBLIC_URL, STAFF, TEAM, settings_for, world_on

VERIFY = ("audit", "verify", "--ledger", "live")
STATUS = ("projections", "status")


@pytest.fixture
def env(database_url):
    """Return the environment of an installation whose team has one member."""
    return environment(
        DATABASE_URL=database_url,
        MASTER_KEYS=MASTER_KEY,
        PUBLIC_URL=PUBLIC_URL,
        CHECKPOINT_KEYS=KEY.private_text,
        STAFF=TEAM,
    )


@pytest.fixture
async def forge(database_url, tmp_path):
    """Return a function that appends an event of nobody, which a pass of the worker finds."""
    settings = settings_for(database_url, tmp_path, CHECKPOINT_KEYS=KEY.private_text)
    async with world_on(settings, tmp_path, follow=False) as world:
        await world.service.staff.add(TEAM, STAFF)
        await Sequencer(world.service.accounts).step()
        live, people = world.service.modes["live"].ledger, People(world.service.accounts)

        async def append():
            moved, cause = ClaimStageChanged("clm_1", "settled"), Cause("staff:stf_x", "req_1")
            async with live.transaction() as transaction:
                await transaction.append(Append(uuid4(), 0, [moved], cause))
            await Sequencer(live).step()
            while await Slices(live, [KEY], 1, people).slice():
                pass

        yield append


def answer(env, *command, explained=""):
    """Return a command's exit code and what it says of the live ledger."""
    done = run(*command, "--json", env=env | environment(EXPLAINED_ACTORS=explained))
    printed = json.loads(done.stdout)
    (live,) = [one for one in printed.get("ledgers", [printed]) if one["ledger"] == "live"]
    return done.returncode, live


async def test_a_number_is_explained_and_one_more_is_not(env, forge):
    """`audit verify` and `projections status` obey the same setting, and go on to show them."""
    await forge()
    for command in (VERIFY, STATUS):
        code, live = answer(env, *command)
        assert (code, live["actor_faults"], live["explained_actors"]) == (1, 1, 0)
        assert "is not of staff:stf_x" in live["actors_fault"]
        code, live = answer(env, *command, explained="live=1")
        assert (code, live["actor_faults"], live["explained_actors"]) == (0, 1, 1)
        told = run(*command, env=env | environment(EXPLAINED_ACTORS="live=1")).stdout
        assert told.startswith("OK: ")
        assert "live has 1 explained event of somebody who could not act" in told
    await forge()
    for command in (VERIFY, STATUS):
        code, live = answer(env, *command, explained="live=1")
        assert (code, live["actor_faults"]) == (1, 2)
        assert answer(env, *command, explained="live=2,test=7")[0] == 0
    told = run(*VERIFY, env=env | environment(EXPLAINED_ACTORS="live=3")).stderr
    assert "explains 3, but there are only 2: lower it" in told


async def test_an_altered_log_is_told_apart_from_actors(env, forge, database_url, tmp_path):
    """The finding about an actor, which never ends, hides nothing that is found later."""
    await forge()
    metrics = tmp_path / "verified.prom"
    command = (*VERIFY, "--metrics", metrics)
    answer(env, *command)
    assert gauges(metrics) == {"verification_failed": 0, "verified_actor_faults": 1}
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute("alter table live.log disable trigger user")
        owner.execute("update live.log set leaf_hash = sha256('x') where position = 1")
    code, live = answer(env, *command, explained="live=1")
    assert (code, live["ok"], live["position"]) == (1, False, 1)
    assert gauges(metrics) == {"verification_failed": 1}


async def test_a_record_that_is_not_ours_is_explained_by_no_number(env, forge, database_url):
    """It is a finding of the record, and not of the log."""
    await forge()
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute("update live.log_findings set mac = null where kind = 'actors'")
    code, live = answer(env, *STATUS, explained="live=1")
    assert (code, live["actor_faults"]) == (1, 1)
    assert "was not written by this service" in live["actors_fault"]


def gauges(path):
    """Return the values of the file for live, but for when that was."""
    found = re.findall(r'^claim_ledger_(\w+){ledger="live"} (\d+)$', path.read_text(), re.MULTILINE)
    return {name: int(value) for name, value in found if name != "verified_at_seconds"}
