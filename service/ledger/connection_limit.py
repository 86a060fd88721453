"""Whether PostgreSQL has connections left for operators, however many processes the service has.

The connection limit of a login bounds all of its processes together, including those that were
killed and whose backends still wait for a replica.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final

import asyncpg
import structlog

from service.ledger.database import Database, LedgerUnavailable, always
from service.ledger.sql import queries

OTHERS_MIN: Final = 10
"""Places for others than the service: migrations, rebuilds, backups, those who look for a fault."""

RETRY_SECONDS: float = 5.0
"""Between two looks at the limits, while PostgreSQL does not let us in."""

_SQL = queries("service.ledger")

log = structlog.get_logger()


async def warn_of_limits(databases: Sequence[Database]) -> None:
    """Log once what is wrong with the limits of the ledgers' logins, when PostgreSQL answers.

    That there is no connection left to ask with is logged, too: it is what a limit that is too low
    comes to.
    """
    is_told = False
    while True:
        try:
            return await _warn(databases)
        except LedgerUnavailable as error:
            if isinstance(error.__cause__, asyncpg.TooManyConnectionsError) and not is_told:
                log.warning("a login of the service has no connection left")
                is_told = True
        await asyncio.sleep(RETRY_SECONDS)


async def _warn(databases: Sequence[Database]) -> None:
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
