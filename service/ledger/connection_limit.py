"""Whether PostgreSQL has connections left for operators, however many processes the service has.

The connection limit of a login bounds all of its processes together, including those that were
killed and whose backends still wait for a replica.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import structlog

from service.ledger.database import Database, always
from service.ledger.sql import queries

OTHERS_MIN: Final = 10
"""Places for others than the service: migrations, rebuilds, backups, those who look for a fault."""

_SQL = queries("service.ledger")

log = structlog.get_logger()


async def warn_of_limits(databases: Sequence[Database]) -> None:
    """Log what is wrong with the limits of the ledgers' logins. Raises LedgerUnavailable."""
    limits: dict[str, int] = {}
    needed, places = Counter[str](), 0
    for database in databases:
        row = always(await database.reads.fetchrow(_SQL.connection_limit))
        limits[row["login"]], places = row["most"], row["places"]
        needed[row["login"]] += sum(pool.size for pool in database.pools.values())
    if -1 in limits.values():
        log.warning("a login of the service has no connection limit")
        return
    if any(limits[login] < needed[login] for login in limits):
        log.warning("a login's connection limit is less than one process may need")
    if sum(limits.values()) > places - OTHERS_MIN:
        log.warning("the connection limits leave too few places for operators")
