"""Reading events from the ledger in tests."""

from typing import TypeVar

from service.facts.caller import Mode
from service.ledger.events import Event
from tests.world import World

EventT = TypeVar("EventT", bound=Event)


async def events_of(world: World, mode: Mode, type_: type[EventT]) -> list[EventT]:
    """Return every event of a type that a ledger holds, in the order of appending."""
    ledger = world.service.modes[mode].ledger
    async with ledger.transaction() as transaction:
        rows = await transaction.connection.fetch(
            "-- tests.contract events_of\n"  # the in-memory ledger knows it by this name
            "select append_id, originator_id, originator_version, topic, state "
            f"from {mode}.events where topic = $1 order by append_id",
            type_.__name__,
        )
        recorded = await transaction.decode([(0, *row) for row in rows])
    return [one.event for one in recorded if isinstance(one.event, type_)]


async def execute(world: World, mode: Mode, statement: str, *args: object) -> None:
    """Run a statement on a ledger's read models, where a test cannot wait for time to pass."""
    async with world.service.modes[mode].ledger.database.writes.connection() as connection:
        await connection.execute(statement, *args)
