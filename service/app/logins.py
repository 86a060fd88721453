"""The logins that a process is about to work under: each its ledger's, and nothing more."""

import structlog

from service.app.databases import database_of
from service.app.setting import PREFIX, SettingsError
from service.app.settings import Settings
from service.facts.caller import LEDGERS
from service.ledger.limits import DEADLINE_SECONDS
from service.ledger.login import login_fault

log = structlog.get_logger()


async def check_logins(settings: Settings) -> None:
    """Raise SettingsError where a login may do too much, or PostgreSQL refuses it.

    PostgreSQL that is away is no reason: each process looks at its logins once it answers.
    """
    faults: list[str] = []
    for name in LEDGERS:
        fault = await login_fault(database_of(settings, name, DEADLINE_SECONDS))
        if fault is not None:
            faults.append(f"{PREFIX}{name.upper()}_DATABASE_URL: {fault}")
    if faults:
        raise SettingsError(faults)
    if settings.values["DATABASE_URL"] is not None:
        # Whoever gets hold of this process can read it, and become the owner.
        log.warning("the owner's database url is in the environment")
