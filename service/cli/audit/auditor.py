"""The settings of an auditor, who only reads: public keys and a database, but no master key."""

import base64
import secrets
from typing import Final

from service.app.setting import PREFIX, SettingsError
from service.app.settings import SETTINGS, Settings, given
from service.evidence.note import NoteKey

_RING: Final = next(one for one in SETTINGS if one.name == "CHECKPOINT_KEYS")
_NO_RING: Final = (secrets.token_bytes(32),)
_UNUSED: Final = {
    # An auditor unwraps no key and makes no link.
    f"{PREFIX}MASTER_KEYS": base64.b64encode(*_NO_RING).decode(),
    f"{PREFIX}PUBLIC_URL": "https://auditor.invalid",
}


def has_master_keys(settings: Settings) -> bool:
    """Return whether settings have a ring: an auditor's have none."""
    return settings.master_keys != _NO_RING


def auditor_settings() -> Settings:
    """Return the environment's settings; those that only writing needs may be absent.

    The ring of checkpoint keys can have public keys alone. Raises SettingsError.
    """
    try:
        return Settings.from_environment(require={"PUBLIC_URL"})
    except SettingsError as error:
        optional = {_RING.variable, *_UNUSED}
        needed = [fault for fault in error.faults if fault.partition(":")[0] not in optional]
        if needed:
            raise SettingsError(needed) from error
    environ = given(*(one.name for one in SETTINGS if one.variable not in _UNUSED)) | _UNUSED
    try:
        ring = _RING.text(environ)
        keys = tuple(NoteKey.parse(key.strip()) for key in ring.split(",")) if ring else None
    except ValueError as error:
        raise SettingsError([f"{_RING.variable}: {error}"]) from error
    for name in _RING.variables:
        environ.pop(name, None)
    parsed = Settings.from_environment(environ, require=())
    return Settings({**parsed.values, "CHECKPOINT_KEYS": keys})
