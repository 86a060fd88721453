"""The ring of master keys, by the settings: from the environment, a file, or Google Cloud KMS."""

from service.app.databases import database_of
from service.app.key_service import unwrapped
from service.app.setting import PREFIX, SettingsError
from service.app.settings import Settings
from service.ledger.database import is_infrastructure_error
from service.ledger.encryption import KeyGone, KeyUnknown, MasterKeys
from service.ledger.limits import DEADLINE_SECONDS
from service.ledger.service_keys import ServiceKeyStore


def master_keys(settings: Settings) -> MasterKeys:
    """Return the ring; raises KeyServiceFault where KMS is needed and does not unwrap a key."""
    endpoint = settings.kms_endpoint
    return MasterKeys(
        [
            key if isinstance(key, bytes) else unwrapped(key, endpoint)
            for key in settings.master_keys
        ]
    )


async def check_ring(settings: Settings) -> None:
    """Raise SettingsError where the ring does not open the service's own keys, as after a rotation.

    Or where one of them is gone. PostgreSQL that is away, or not migrated yet, is no reason: a
    process that could not look is not ready until it has opened them.
    """
    accounts = database_of(settings, "accounts", DEADLINE_SECONDS)
    await accounts.open()
    try:
        store = ServiceKeyStore(accounts, master_keys(settings))
        await store.check()
        await store.known_events()
    except KeyUnknown as error:
        whose = "" if isinstance(error, KeyGone) else f"{PREFIX}MASTER_KEYS: "
        raise SettingsError([f"{whose}{error}"]) from error
    except Exception as error:  # raised again, unless waiting for PostgreSQL may help
        if not is_infrastructure_error(error):
            raise
    finally:
        await accounts.close()
