"""A complete environment, with settings of a test's own."""

import base64

import pytest

from service.app.setting import PREFIX, SettingsError
from service.app.settings import SERVE, Settings

KEYS = [bytes([n]) * 32 for n in (251, 252)]
RING = ",".join(base64.b64encode(key).decode() for key in KEYS)
GOOD = {
    "DATABASE_URL": "postgresql://app:canary-p@db.example.com:5432/ledger?sslmode=require",
    "ACCOUNTS_DATABASE_URL": "postgresql://claim_ledger_accounts:canary-a@127.0.0.1/ledger",
    "LIVE_DATABASE_URL": "postgresql://claim_ledger_live:canary-l@127.0.0.1/ledger",
    "TEST_DATABASE_URL": "postgresql://claim_ledger_test:canary-t@127.0.0.1/ledger",
    "MASTER_KEYS": RING,
    "PUBLIC_URL": "https://api.example.com",
    "SMTP_URL": "smtp://mailer:canary-s@mail.example.com:587",
    "REDIS_URL": "rediss://:canary-r@cache.example.com:6379/0",
}


def environ(**changes: str | None) -> dict[str, str]:
    """Return a complete environment with some settings changed or (None) removed."""
    values = GOOD | changes
    return {f"{PREFIX}{name}": text for name, text in values.items() if text is not None}


def settings(**changes: str | None) -> Settings:
    """Parse for `serve`."""
    return Settings.from_environment(environ(**changes), require=SERVE)


def faults(**changes: str | None) -> list[str]:
    """Return the faults, without the prefix."""
    with pytest.raises(SettingsError) as caught:
        settings(**changes)
    return [fault.removeprefix(PREFIX) for fault in caught.value.faults]
