"""The settings of an auditor, who only reads: public keys and a database, but no master key."""

import secrets
from collections.abc import Collection
from typing import Final

from service.app.setting_values import verification_keys
from service.app.settings import Settings

_NO_RING: Final = (secrets.token_bytes(32),)
_STAND_INS: Final = {"MASTER_KEYS": _NO_RING, "PUBLIC_URL": "https://auditor.invalid"}
"""For what is absent: an auditor unwraps no key and makes no link."""


def has_master_keys(settings: Settings) -> bool:
    """Return whether settings have a ring: an auditor's have none."""
    return settings.master_keys != _NO_RING


def auditor_settings(*, require: Collection[str]) -> Settings:
    """Return the environment's settings; those that only writing needs may be absent.

    The ring of checkpoint keys can have public keys alone. What is given has to be right: with a
    faulty ring, nobody would learn that MACs are no longer checked. Raises SettingsError.
    """
    given = Settings.from_environment(
        require=require, parsers={"CHECKPOINT_KEYS": verification_keys}
    ).values
    absent = {name: value for name, value in _STAND_INS.items() if given[name] is None}
    return Settings({**given, **absent})
