"""The ledgers' databases by the settings: each under the login of its own URL."""

from service.app.settings import Settings
from service.ledger.database import Database, Pool
from service.ledger.traced import TracedPool


def database_of(settings: Settings, ledger: str, deadline_seconds: float) -> Database:
    """Return the database of the ledger accounts, live or test, its pools not yet opened."""
    return Database(
        getattr(settings, f"{ledger}_database_url"),
        ledger,
        pooled=settings.transaction_pooler,
        pool_size=settings.pool_size,
        deadline=deadline_seconds,
        make_pool=Pool if settings.otlp_url is None else TracedPool,
    )
