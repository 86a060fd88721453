"""Verifying a ledger while a rebuild, or a rollback, swaps the tables of a read model."""

import pytest

from service.evidence.rolled_back import rolled_back
from service.evidence.verify import definitions, ledger_verifier
from service.evidence.verify.definitions import definitions_fault
from service.evidence.verify.expectations import Evidence
from service.evidence.verify.ledger_verifier import verify_ledger
from tests.evidence.checkpointing import KEY
from tests.patience import PATIENCE_SECONDS
from tests.projections.history import number_all
from tests.projections.rebuilding import model, rebuild, rollback

pytestmark = pytest.mark.followed


@pytest.fixture
async def database(world, claims):  # noqa: ARG001 - to read
    """Return a ledger's database whose events have their numbers."""
    ledger = world.service.ledger("live")
    await number_all(ledger)
    return ledger.database


async def test_a_swap_while_a_log_is_verified_is_no_fault(
    world, database, database_url, monkeypatch
):
    """Its snapshot is of before; the schema is looked at apart."""
    around = ledger_verifier.leaves_fault
    swapped = []

    async def swap(*args):
        swapped.append(await rebuild(database_url, model(world, "connections")))
        return await around(*args)

    monkeypatch.setattr(ledger_verifier, "leaves_fault", swap)
    verdict = await verify_ledger(database, Evidence([KEY]))
    assert (verdict.ok, verdict.fault, len(swapped)) == (True, None, 1)


async def test_swaps_while_a_schema_is_compared_are_no_difference(
    world, database, database_url, monkeypatch
):
    """Also where one swap after the other overtakes the statement that compares it."""
    looks, one = [], model(world, "connections")
    look = definitions._found  # noqa: SLF001 - a look that is overtaken is put in its place
    for swap in (rebuild, rollback):
        async with (
            database.background.connection() as connection,
            rolled_back(connection, seconds_max=PATIENCE_SECONDS, isolation="repeatable_read"),
        ):
            made, there = await look(connection, "live")
            assert there == made
            await swap(database_url, one)
            looks.append(await look(connection, "live"))
    assert looks[0] == looks[1]
    assert looks[0][0] != looks[0][1]

    async def found(*args):
        return looks.pop() if looks else await look(*args)

    monkeypatch.setattr(definitions, "_found", found)
    assert (await definitions_fault(database), looks) == (None, [])
