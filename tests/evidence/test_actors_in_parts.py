"""Events of somebody who could not act are counted by parts of a log, as by the walk through it."""

from functools import partial

import pytest

from service.evidence.verify import ledger_verifier
from service.evidence.verify import part as part_check
from service.evidence.verify.expectations import Evidence
from service.evidence.verify.known_actors import Accounts
from service.evidence.verify.ledger_verifier import verify, verify_ledger
from service.facts.entities import EntityRegistered, entity_stream
from tests.evidence.checkpointing import KEY
from tests.evidence.watched import NOBODY, by_parts

FORGED = ("staff:stf_x", NOBODY, "customer:ent_2", "customer:ent_3", "customer:ent_2")


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch):
    """Have a part keep few streams, and read few rows at a time."""
    monkeypatch.setattr(part_check, "STREAMS_MAX", 2)
    monkeypatch.setattr(part_check, "STEP", 2)


async def verdict(watched, confirm):
    """Verify the ledger of claims: by parts first, or by the walk alone."""
    database, accounts = watched.live.database, Accounts(watched.accounts.database)
    async with database.background.transaction(60) as connection:
        evidence = Evidence([KEY])
        return await verify(connection, "live", evidence, accounts=accounts, confirm=confirm)


async def test_parts_find_what_the_walk_finds(watched):
    """Whoever acts in which part: the first one is named, and the others are counted."""
    for forged in (None, *FORGED):
        if forged is not None:
            await watched.act(forged)
        walked = await verdict(watched, None)
        for parts in (1, 3):
            tried = []
            confirm = partial(by_parts, tried, parts)
            assert await verdict(watched, confirm) == walked
            assert tried == [True]
    assert walked.actor_faults == len(FORGED)


async def test_an_explained_actor_ends_no_fast_verification(watched, monkeypatch):
    """The log has the event for good, and would be walked through every day."""
    await watched.act(NOBODY)
    await watched.act("customer:ent_2")
    monkeypatch.setattr(ledger_verifier, "_walked", None)  # nothing is to be walked through
    accounts = Accounts(watched.accounts.database)
    found = await verify_ledger(watched.live.database, Evidence([KEY]), accounts=accounts)
    assert (found.ok, found.actor_faults) == (True, 2)


async def test_whose_registration_waits_is_left_to_the_walk(watched):
    """A genuine event counts from its commit on, before it has its number."""
    await watched.act("customer:ent_2")
    registered = EntityRegistered("ent_2", established=True)
    stream = entity_stream("live", "ent_2")
    await watched.append("system:sandbox", registered, stream, "ent_2")
    tried = []
    found = await verdict(watched, partial(by_parts, tried, 1))
    assert (found.actor_faults, tried) == (0, [False])
    await watched.act("system:sandbox")  # numbers both
    found = await verdict(watched, partial(by_parts, tried, 1))
    assert (found.actor_faults, tried) == (0, [False, True])
