"""Secrets that stand in files: who may read them, and which settings may."""

import os
from pathlib import Path

import pytest

from service.app.settings import SETTINGS, settings_table
from tests.given_settings import KEYS, RING, faults, settings
from tests.tables import every_row


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    """Return a file with a ring of master keys, as systemd hands it over."""
    path = tmp_path / "master-keys"
    path.write_text(f"{RING}\n")
    path.chmod(0o440)
    return path


def test_a_secret_may_stand_in_a_file(secret_file: Path) -> None:
    """The variable with `_FILE` names it; the white space around the value is dropped."""
    parsed = settings(MASTER_KEYS=None, MASTER_KEYS_FILE=str(secret_file))
    assert parsed.master_keys == tuple(KEYS)
    for mode in (0o400, 0o600, 0o640):
        secret_file.chmod(mode)
        settings(MASTER_KEYS=None, MASTER_KEYS_FILE=str(secret_file))
    link = secret_file.parent / "link"
    link.symlink_to(secret_file)  # as Kubernetes mounts them
    assert settings(MASTER_KEYS="", MASTER_KEYS_FILE=str(link)).master_keys == tuple(KEYS)


@pytest.mark.parametrize("mode", [0o444, 0o404, 0o644, 0o660, 0o620, 0o602, 0o641])
def test_a_secret_that_others_can_read_or_change_is_refused(secret_file: Path, mode: int) -> None:
    """The fault has the mode, and nothing of the content."""
    secret_file.chmod(mode)
    (fault,) = faults(MASTER_KEYS=None, MASTER_KEYS_FILE=str(secret_file))
    said = f"the file has mode {mode:04o}; expected 0400, 0440 or 0600"
    assert fault == f"MASTER_KEYS: from CLAIM_LEDGER_MASTER_KEYS_FILE: {said}"


def test_a_secret_of_another_user_is_refused(
    secret_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its owner could change it; root and the service's own user may own it."""
    owner = secret_file.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    if owner == 0:
        settings(MASTER_KEYS=None, MASTER_KEYS_FILE=str(secret_file))
        os.chown(secret_file, 4712, -1)
    (fault,) = faults(MASTER_KEYS=None, MASTER_KEYS_FILE=str(secret_file))
    assert "belongs to another user" in fault


def test_unusable_secret_files_are_refused(secret_file: Path, tmp_path: Path) -> None:
    """None is waited for, none is read without end, and none is quoted."""
    pipe, directory = tmp_path / "pipe", tmp_path / "directory"
    os.mkfifo(pipe, 0o600)
    directory.mkdir(mode=0o700)
    contents = {"empty": b" \n", "binary": b"\xff", "large": b"x" * 65_537, "bad": b"canary"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o600)
    said = {
        "none": "No such file",
        "directory": "Is a directory",
        "pipe": "no regular file",
        "empty": "is empty",
        "binary": "not text",
        "large": "more than 65536 bytes",
        "bad": "expected base64",
    }
    with every_row() as row:
        for name, fault in said.items():
            with row(name):
                (found,) = faults(MASTER_KEYS=None, MASTER_KEYS_FILE=str(tmp_path / name))
                assert fault in found
                assert "canary" not in found
    (both,) = faults(MASTER_KEYS_FILE=str(secret_file))
    assert both == "MASTER_KEYS: is set, and CLAIM_LEDGER_MASTER_KEYS_FILE too: unset one of them"


def test_only_secrets_stand_in_files() -> None:
    """Each has its variable in the documentation; other settings have none."""
    rows = {line.split("`")[1]: line for line in settings_table().splitlines()[2:]}
    for row in SETTINGS:
        assert (f"`{row.variable}_FILE`" in rows[row.variable]) == row.secret
    assert faults(PORT_FILE="/x")[0].startswith("PORT_FILE: is not a known setting")
