"""What protects a log is compared where its rows are: on the shards of its node."""

import asyncpg
import pytest

from service.evidence.verify.definitions import definitions_fault
from service.ledger.session import SESSION
from tests.citus.cluster import Citus, shard_of

pytestmark = pytest.mark.server

EDITED = {
    "alter table live.events_{number} disable trigger append_only_{number}": (
        "The trigger append_only of live.events_{number} is gone, off or replaced: nothing keeps"
        " the table from being changed."
    ),
    "alter table live.events disable trigger append_only": (
        "The trigger append_only of live.events is gone, off or replaced: nothing keeps the table"
        " from being changed."
    ),
    "alter table live.events_{number} drop constraint events_pkey_{number}": (
        "The key (originator_id, originator_version) of live.events_{number} is gone: nothing keeps"
        " its rows from being doubled."
    ),
    "create view live.events_1 as select": "live.events_1 is a view that no migration made.",
    "create trigger truncate_trigger_1 before truncate on live.events for each statement"
    " execute function live.refuse_change()": (
        "live.events has this trigger, which no migration made: CREATE TRIGGER truncate_trigger_1"
        " BEFORE TRUNCATE ON live.events FOR EACH STATEMENT EXECUTE FUNCTION live.refuse_change() O"
    ),
}


async def fault_on(citus: Citus, node: str, *statements: str) -> str | None:
    """Return what is found on a node after some statements of a superuser, which are undone."""
    own = {"citus.enable_ddl_propagation": "off", "citus.enable_manual_changes_to_shards": "on"}
    connection = await asyncpg.connect(
        citus.nodes[node].superuser_url, server_settings=SESSION | own
    )
    try:
        transaction = connection.transaction()
        await transaction.start()
        for statement in statements:
            await connection.execute(statement)
        fault = await definitions_fault(connection, "live")
        await transaction.rollback()
    finally:
        await connection.close()
    return fault and fault.sentence


async def test_what_was_changed_on_a_node_is_found(citus: Citus) -> None:
    """On a shard, on the table that it is of, and beside them; what Citus makes is no fault."""
    home = citus.node_of("live")
    number = shard_of(citus, "live.events").rpartition("_")[2]
    assert await fault_on(citus, home) is None
    for statement, said in EDITED.items():
        found = await fault_on(citus, home, statement.format(number=number))
        assert found == said.format(number=number)


async def test_another_node_does_not_say_that_all_is_well(citus: Citus) -> None:
    """It has neither the rows nor what protects them."""
    for name in {*citus.nodes} - {citus.node_of("live")}:
        assert "are on another node" in (await fault_on(citus, name) or "")
