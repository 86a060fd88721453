"""The ring of master keys, by the settings: from the environment, a file, or Google Cloud KMS."""

from service.app.key_service import unwrapped
from service.app.settings import Settings
from service.ledger.encryption import MasterKeys


def master_keys(settings: Settings) -> MasterKeys:
    """Return the ring; raises KeyServiceFault where KMS is needed and does not unwrap a key."""
    endpoint = settings.kms_endpoint
    return MasterKeys(
        [
            key if isinstance(key, bytes) else unwrapped(key, endpoint)
            for key in settings.master_keys
        ]
    )
