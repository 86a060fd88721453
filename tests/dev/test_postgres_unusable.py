"""Binaries and directories that no server can be started with."""

import re
import sys
import tempfile
from pathlib import Path

import pytest

from service.cli.dev.postgres import (
    EmbeddedPostgres,
)
from service.cli.dev.postgres.faults import reason
from tests.dev.refusals import refused


def test_another_major_version_is_refused(tmp_path):
    """The refusal names both versions."""
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster" / "PG_VERSION").write_text("14\n")
    (tmp_path / "password").write_text("secret\n")

    line = refused(EmbeddedPostgres(tmp_path))

    # The binaries are the wheel's, or a copy where the server's user cannot read the wheel's.
    assert re.fullmatch(
        rf"{tmp_path} was made by PostgreSQL 14, but /\S+/bin is PostgreSQL 18", line
    )


def test_a_missing_library_is_named(tmp_path):
    """The loader's message becomes the library's name and its package."""
    # Not in tmp_path, which is closed to the server's user.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        program = Path(folder) / "postgres"
        program.write_text(
            "#!/bin/sh\necho 'postgres: error while loading shared libraries: libz.so.1: "
            "cannot open shared object file: No such file or directory' >&2\nexit 127\n"
        )
        program.chmod(0o755)
        line = refused(EmbeddedPostgres(tmp_path / "data", bin_dir=Path(folder)))

    assert line.startswith("PostgreSQL cannot load the shared library libz.so.1 (cannot open")
    assert line.endswith("apt-get install zlib1g")


def test_a_folder_without_postgresql_is_refused(tmp_path):
    """The refusal names the folder."""
    line = refused(EmbeddedPostgres(tmp_path / "data", bin_dir=tmp_path / "nowhere"))

    assert f"there is no PostgreSQL in {tmp_path}/nowhere" == line


def test_an_unusable_directory_is_refused(tmp_path):
    """A file in its place, or a directory that is not writable, is named."""
    (tmp_path / "file").write_text("")

    assert f"{tmp_path}/file is not a directory" == refused(EmbeddedPostgres(tmp_path / "file"))
    if sys.platform == "linux":
        line = refused(EmbeddedPostgres(Path("/sys/claim-ledger")))
        assert line.startswith("/sys/claim-ledger is not writable: ")


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (
            'initdb: error: could not write file "pg_hba.conf": No space left on device\n',
            'the disk is full: could not write file "pg_hba.conf": No space left on device',
        ),
        ("x [7] FATAL:  first\nx [7] FATAL:  second\nx [7] LOG:  shut down\n", "second"),
        (
            "initdb: error while loading shared libraries: libodd.so.3: cannot open\n",
            "PostgreSQL cannot load the shared library libodd.so.3 (cannot open)",
        ),
        ("Segmentation fault\n", "Segmentation fault"),
        ("", "it printed nothing"),
    ],
)
def test_the_reason_is_chosen_from_the_output(output, expected):
    """Disk and library errors come first, then FATAL."""
    assert expected == reason(output)
