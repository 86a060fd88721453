"""Whether tables beside the live ones still have their shape: a migration changes the live ones."""

from typing import Final

from service.ledger.database import Connection
from service.ledger.read_model import ReadModel
from service.ledger.rebuild.refused import RebuildRefused
from service.ledger.sql import queries

DIFFERENCES_NAMED_MAX: Final = 3
"""In a refusal, which is one line. The rest is counted."""

_SHAPE: Final = queries("service.ledger.rebuild").table_shape.on("pg_catalog")


async def refuse_changed(connection: Connection, model: ReadModel, schema: str) -> None:
    """Raise RebuildRefused if a schema's tables are no longer shaped as the live ones.

    Every statement of the service is written for the live shape: with another one, rows could be
    read and no longer written.
    """
    live = {(table, part) for table, part in await _shape(connection, model, model.ledger.name)}
    ours = {(table, part) for table, part in await _shape(connection, model, schema)}
    found = [f"{table}: {part} is missing" for table, part in sorted(live - ours)]
    found += [f"{table}: {part} is there no longer" for table, part in sorted(ours - live)]
    if not found:
        return
    rest = len(found) - DIFFERENCES_NAMED_MAX
    more = f", and {rest} more" if rest > 0 else ""
    raise RebuildRefused(
        f"a migration has changed the tables of {model.name} since those in {schema} were made "
        f"({'; '.join(found[:DIFFERENCES_NAMED_MAX])}{more}). Nothing was swapped; "
        "`projections rebuild` makes rows for the tables as they are now."
    )


async def _shape(connection: Connection, model: ReadModel, schema: str) -> list[tuple[str, str]]:
    rows = await connection.fetch(_SHAPE, schema, list(model.tables))
    return [(row["table"], row["part"]) for row in rows]
