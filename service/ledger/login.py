"""Whether a ledger's login may be used, checked before a process begins to work."""

import ssl

import asyncpg

from service.ledger.database import Database, LedgerUnavailable, WrongLogin


async def login_fault(database: Database) -> str | None:
    """Return in a line what is wrong with the login, or with how the database is reached.

    None where all is well, and where PostgreSQL is away: each process looks again once it answers.
    """
    await database.open()
    try:
        async with database.reads.connection():
            return None
    except WrongLogin as error:
        return str(error)
    except LedgerUnavailable as error:
        return _lasting(error.__cause__)
    except asyncpg.PostgresError as error:  # such as a right that the check itself needs
        return str(error)
    finally:
        await database.close()


def pooler_fault(cause: BaseException) -> str | None:
    """Return what a pooler says of settings that it does not take, and what to do.

    None for what it says, with the same code, while its own server is away.
    """
    if "startup parameter" not in str(cause):
        return None
    return f"{cause}: a transaction pooler? Then set CLAIM_LEDGER_TRANSACTION_POOLER=on"


def _lasting(cause: BaseException | None) -> str | None:
    """Return a problem with the login that waiting for PostgreSQL does not solve."""
    match cause:
        case asyncpg.InvalidAuthorizationSpecificationError() | asyncpg.InvalidCatalogNameError():
            return str(cause)
        case asyncpg.ProtocolViolationError():
            return pooler_fault(cause)
        case ssl.SSLError():
            return f"TLS fails: {cause}"
        case ConnectionError() if "SSL" in str(cause):  # the driver's own: no TLS over there
            return str(cause)
        case _:
            return None
