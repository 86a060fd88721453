"""The settings of `audit verify`: what an auditor may leave out, and what is given for nothing."""

import base64
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from service.app.setting import PREFIX, SettingsError
from service.app.settings import LEDGER_URLS, Settings
from service.cli.audit.auditor import auditor_settings, has_master_keys
from service.evidence.note import NoteKey
from tests.given_settings import GOOD, KEYS, RING

PUBLIC = NoteKey.generate("example.com/ledger").public_text
KEY = RING.partition(",")[0]
URLS = {name: GOOD[name] for name in sorted(LEDGER_URLS)}

Read = Callable[..., Settings]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    """Return a function that reads an auditor's settings from these and the ledgers' URLs alone."""

    def of(**given: str) -> Settings:
        given = URLS | given
        for name in [name for name in os.environ if name.startswith(PREFIX)]:
            monkeypatch.delenv(name)
        for name, value in given.items():
            monkeypatch.setenv(f"{PREFIX}{name}", value)
        return auditor_settings(require=LEDGER_URLS)

    return of


@pytest.fixture
def secret(tmp_path: Path) -> Callable[..., str]:
    """Return a function that makes a file of a mode, and returns its path."""

    def put(text: str, mode: int = 0o400) -> str:
        path = tmp_path / "secret"
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    return put


def test_what_an_auditor_does_not_need_may_be_absent(
    read: Read, secret: Callable[..., str]
) -> None:
    """Neither ring nor origin, or nothing in them as in compose files; public keys in a file."""
    keys = {"CHECKPOINT_KEYS_FILE": secret(PUBLIC)}
    for given in ({}, {"MASTER_KEYS": "", "MASTER_KEYS_FILE": " "}, {"PUBLIC_URL": ""}):
        settings = read(**keys, **given)
        (found,) = settings.checkpoint_keys or ()
        assert (found.public_text, has_master_keys(settings)) == (PUBLIC, False)
        assert settings.public_url


def test_every_url_that_is_absent_is_named_at_once(read: Read) -> None:
    """An auditor adds all of them, and not one after each attempt."""
    with pytest.raises(SettingsError) as caught:
        read(ACCOUNTS_DATABASE_URL="", TEST_DATABASE_URL="")
    assert [fault.partition(": is not set")[0] for fault in caught.value.faults] == [
        f"{PREFIX}ACCOUNTS_DATABASE_URL",
        f"{PREFIX}TEST_DATABASE_URL",
    ]


@pytest.mark.parametrize(
    "others",
    [
        {},
        {"PUBLIC_URL": "https://api.example.com"},
        {"CHECKPOINT_KEYS": PUBLIC},
        {"CHECKPOINT_KEYS": PUBLIC, "TILES_URL": "file:///t", "ARCHIVE_URL": "file:///a"},
        {"PRIVATE_WEBHOOKS": "on"},
    ],
    ids=" ".join,
)
def test_a_ring_is_used_whatever_else_is_absent(read: Read, others: dict[str, str]) -> None:
    """Each stand-in is for one setting alone, and no other is compared with it."""
    settings = read(MASTER_KEYS=RING, **others)
    assert (settings.master_keys, has_master_keys(settings)) == (tuple(KEYS), True)


def test_public_keys_name_the_logs_that_are_served(read: Read) -> None:
    """A setting that needs some key is content with those."""
    served = {"TILES_URL": "file:///t", "ARCHIVE_URL": "file:///a", "SERVE_TILES": "on"}
    assert read(CHECKPOINT_KEYS=PUBLIC, **served).serve_tiles
    with pytest.raises(SettingsError, match="SERVE_TILES: expected `off` without"):
        read(**served)


@pytest.mark.parametrize("others", [{}, {"PRIVATE_WEBHOOKS": "on"}, {"CHECKPOINT_KEYS": PUBLIC}])
@pytest.mark.parametrize(
    "ring", ["x", KEY[:-2], f"{KEY},{KEY}", f"{KEY},", "both", "mode", "empty", "missing"]
)
def test_a_faulty_ring_is_a_fault(
    read: Read, secret: Callable[..., str], ring: str, others: dict[str, str]
) -> None:
    """It is named in one line: without it, a daily verification would check no MAC, and say OK."""
    given = {
        "both": lambda: {"MASTER_KEYS": RING, "MASTER_KEYS_FILE": secret(RING)},
        "mode": lambda: {"MASTER_KEYS_FILE": secret(RING, 0o644)},
        "empty": lambda: {"MASTER_KEYS_FILE": secret("")},
        "missing": lambda: {"MASTER_KEYS_FILE": secret("") + "-"},
    }.get(ring, lambda: {"MASTER_KEYS": ring})
    with pytest.raises(SettingsError) as caught:
        read(**given(), **others)
    (fault,) = caught.value.faults
    assert fault.startswith(f"{PREFIX}MASTER_KEYS: ")
    assert base64.b64encode(KEYS[0]).decode()[:8] not in fault


def test_a_faulty_origin_is_a_fault(read: Read) -> None:
    """Like all that is given."""
    with pytest.raises(SettingsError, match=f"{PREFIX}PUBLIC_URL: "):
        read(MASTER_KEYS=RING, PUBLIC_URL="nowhere")
