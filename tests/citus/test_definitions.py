"""What protects a log is compared where its rows are: on the shards of its node."""

from typing import NamedTuple

import pytest

from service.evidence.verify.definitions import definitions_fault
from service.ledger.database import Database
from tests.citus.cluster import Citus, as_superuser, shard_of
from tests.databases import login_url
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.server


class Edit(NamedTuple):
    """What a superuser changes, how that is undone, and what is said of it."""

    statement: str
    undone_by: str
    said: str


UNGUARDED = (
    "The trigger append_only of {} is gone, off or replaced: nothing keeps the table from being"
    " changed."
)
EDITS = (
    Edit(
        "alter table live.events_{number} disable trigger append_only_{number}",
        "alter table live.events_{number} enable always trigger append_only_{number}",
        UNGUARDED.format("live.events_{number}"),
    ),
    Edit(
        "alter table live.events disable trigger append_only",
        "alter table live.events enable always trigger append_only",
        UNGUARDED.format("live.events"),
    ),
    Edit(
        "alter table live.events_{number} drop constraint events_pkey_{number}",
        "alter table live.events_{number}"
        " add constraint events_pkey_{number} primary key (originator_id, originator_version)",
        "The key (originator_id, originator_version) of live.events_{number} is gone: nothing keeps"
        " its rows from being doubled.",
    ),
    Edit(
        "create view live.events_1 as select",
        "drop view live.events_1",
        "live.events_1 is a view that no migration made.",
    ),
    Edit(
        "create trigger truncate_trigger_1 before truncate on live.events for each statement"
        " execute function live.refuse_change()",
        "drop trigger truncate_trigger_1 on live.events",
        "live.events has this trigger, which no migration made: CREATE TRIGGER truncate_trigger_1"
        " BEFORE TRUNCATE ON live.events FOR EACH STATEMENT EXECUTE FUNCTION live.refuse_change()"
        " O",
    ),
)


async def fault_on(citus: Citus, node: str) -> str | None:
    """Return what the live ledger's login finds on a node."""
    url = login_url(citus.nodes[node].url, "live")
    database = Database(url, "live", pool_size=1, deadline=PATIENCE_SECONDS)
    await database.open()
    try:
        fault = await definitions_fault(database)
    finally:
        await database.close()
    return fault and fault.sentence


async def test_what_was_changed_on_a_node_is_found(citus: Citus) -> None:
    """On a shard, on the table that it is of, and beside them; what Citus makes is no fault."""
    home = citus.node_of("live")
    number = shard_of(citus, "live.events").rpartition("_")[2]
    with as_superuser(citus.nodes[home]) as operator:
        operator.execute("set citus.enable_ddl_propagation = off")
        operator.execute("set citus.enable_manual_changes_to_shards = on")
        for edit in EDITS:
            statement, undone_by, said = (one.format(number=number) for one in edit)
            operator.execute(statement.encode())
            found = await fault_on(citus, home)
            operator.execute(undone_by.encode())
            assert found == said
    assert await fault_on(citus, home) is None


async def test_another_node_does_not_say_that_all_is_well(citus: Citus) -> None:
    """It has neither the rows nor what protects them."""
    for name in {*citus.nodes} - {citus.node_of("live")}:
        assert "are on another node" in (await fault_on(citus, name) or "")
