"""Why the database could not do what a command asked for, as an operator can correct it."""

import asyncio
import re
import ssl
from pathlib import Path
from socket import gaierror
from typing import Final
from urllib.parse import urlsplit

from asyncpg import PostgresError

from service.app.setting import PREFIX
from service.app.setting_values import database_place
from service.app.settings import LEDGER_URLS, Settings
from service.ledger.database import WrongLogin
from service.ledger.login import pooler_fault

_NOT_MIGRATED = "The database is not migrated: run `claim-ledger migrate`."
_WHY = {
    "InvalidPasswordError": "PostgreSQL refuses the password of {url}: is it the one that "
    "`claim-ledger migrate` was given?",
    "InvalidAuthorizationSpecificationError": "PostgreSQL refuses the user of {url}: "
    "`claim-ledger migrate` makes the logins of the ledgers, and `pg_hba.conf` has to admit them.",
    "InvalidCatalogNameError": "PostgreSQL has no such database.",
    "InvalidParameterValueError": _NOT_MIGRATED,
    "InvalidSchemaNameError": _NOT_MIGRATED,
    "UndefinedTableError": _NOT_MIGRATED,
    "NotMigrated": _NOT_MIGRATED,
    "TargetServerAttributeNotMatched": "PostgreSQL takes no writes: it is a standby, or somebody "
    "set it read-only.",
    "InsufficientPrivilegeError": "The database user lacks a privilege that the service needs, or "
    "a policy would hide rows from it: `audit verify` shows more.",
    "SequencingTimeout": "Events wait for their numbers: another process holds the log's head. "
    "Nothing is lost; try again.",
    "UnboundEvent": "A stream has an event that this service did not write. One that waits for its "
    "number is about to be set aside (`projections status`): try again. One in the log itself, "
    "or in neither log nor queue, stays, and `audit verify` names it.",
}
"""What an operator can correct or wait for, by the name of the exception's class."""

_SILENT: Final = {
    *("ConnectionDoesNotExistError", "QueryCanceledError"),
    *("CannotConnectNowError", "AdminShutdownError", "CrashShutdownError"),
}
"""PostgreSQL's errors where it is starting, stopping or late; by all others, it refuses."""


def why(error: Exception, data_dir: Path | None, settings: Settings | None = None) -> str:
    """Explain to a person why the database could not do what was asked."""
    cause: BaseException = error
    while True:
        if isinstance(cause, WrongLogin):
            return f"{cause}."
        if type(cause).__name__ in _WHY:
            return _WHY[type(cause).__name__].format(url=_url_of(cause, settings))
        # A deadline cancels what it ends: that it has passed is the reason.
        if cause.__cause__ is None or isinstance(cause.__cause__, asyncio.CancelledError):
            break
        cause = cause.__cause__
    if data_dir is not None and not isinstance(cause, PostgresError):
        return f"The `claim-ledger dev` of {data_dir} does not answer; is it running?"
    if isinstance(cause, PostgresError) and (fault := pooler_fault(cause)):
        return f"{fault}."
    # Mostly one; which of several it was, nothing says: the owner's may go around a pooler.
    places = dict.fromkeys(database_place(url) for url in _urls(settings).values())
    at = f" at {' or '.join(places)}" if places else ""
    name = type(cause).__name__
    refuses = isinstance(cause, PostgresError) and name not in _SILENT
    done, said = "refuses" if refuses else "does not answer", _said(cause)
    return f"PostgreSQL{at} {done} ({name}{said and ': '}{said})."


def _said(cause: BaseException) -> str:
    """Return what there is to correct by the first line of the cause, or nothing."""
    match cause:
        case ssl.SSLCertVerificationError():
            return cause.verify_message
        case gaierror():
            return cause.strerror or ""
        # A pooler has reasons of its own, and a limit that is too short for a command says so here.
        case PostgresError() | ssl.SSLError():
            return str(cause).partition("\n")[0]
        case ConnectionError() if "SSL" in str(cause):  # the driver's own: no TLS over there
            return str(cause)
        case _:
            return ""


def _url_of(refused: BaseException, settings: Settings | None) -> str:
    """Return the variables of the URLs with the login that PostgreSQL refuses, as it names it."""
    found = re.search(r'(?:user|role) "([^"]+)"', str(refused))
    named = [
        f"{PREFIX}{name}"
        for name, url in _urls(settings).items()
        if found is not None and urlsplit(url).username == found[1]
    ]
    return " or ".join(named) or "a database URL"


def _urls(settings: Settings | None) -> dict[str, str]:
    """Return the URLs of the settings by their names, without the prefix."""
    names = sorted({"DATABASE_URL", *LEDGER_URLS})
    urls = {name: settings.values.get(name) for name in names} if settings else {}
    return {name: url for name, url in urls.items() if isinstance(url, str)}
