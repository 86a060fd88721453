"""The ledgers' databases by the settings: each under the login of its own URL."""

from service.app.settings import Settings
from service.app.transport import is_excepted
from service.ledger.database import Database, Pool
from service.ledger.traced import TracedPool


def database_of(settings: Settings, ledger: str, deadline_seconds: float) -> Database:
    """Return the database of the ledger accounts, live or test, its pools not yet opened."""
    url: str = getattr(settings, f"{ledger}_database_url")
    return Database(
        url,
        ledger,
        pooled=settings.transaction_pooler,
        network_encrypts=is_excepted(url, settings.plaintext_hosts),
        pool_size=settings.pool_size,
        deadline=deadline_seconds,
        make_pool=Pool if settings.otlp_url is None else TracedPool,
    )
