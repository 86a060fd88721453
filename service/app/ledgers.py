"""A ledger by the settings: its database, its role and its pool."""

from collections.abc import Sequence

from service.app.settings import Settings
from service.core.clock import Clock
from service.ledger.database import Database
from service.ledger.encryption import MasterKeys
from service.ledger.events import Catalogue
from service.ledger.ledger import Ledger, Projector


def ledger_for(
    settings: Settings,
    master_keys: MasterKeys,
    clock: Clock,
    deadline_seconds: float,
    name: str,
    events: Catalogue,
    projectors: Sequence[Projector],
) -> Ledger:
    """Return the ledger accounts, live or test, its pool not yet opened."""
    own_url: str | None = settings.values[f"{name.upper()}_DATABASE_URL"]
    database = Database(
        own_url or settings.database_url,
        name,
        role=None if own_url else f"claim_ledger_{name}",
        pool_size=settings.pool_size,
        deadline=deadline_seconds,
    )
    return Ledger(database, events, projectors, master_keys, clock, wake_nobody)


def wake_nobody() -> None:
    """Do nothing: no sequencer runs in this process, or nobody waits for the step."""
