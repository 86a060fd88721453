"""What the release before asks of the database can be asked of the schema of this one.

A roll-out, and a roll-back, run both beside each other: `just upgrade` does it for real.
"""

import re
import subprocess
import tarfile
from io import BytesIO

import psycopg
import pytest

from service.facts.caller import LEDGERS
from tests.upgrade.releases import ROOT, commit_before, has_history

STATEMENT = re.compile(r"^-- name: (\w+)\n(.*?)(?=^-- name: |\Z)", re.MULTILINE | re.DOTALL)
PLANNED = re.compile(r"^(?:select|insert|update|delete|with)\b", re.MULTILINE)
GONE: dict[str, str] = {}
"""Statements of the release before that this one's schema refuses, and the runbook's word on it."""


@pytest.mark.skipif(not has_history(), reason="git's history is not at hand")
def test_its_statements_are_still_understood(module_database_url):
    """Each that this release has changed or dropped is planned on a ledger: no name is gone."""
    packed = subprocess.run(
        ["git", "archive", "--format=tar", commit_before(), "service", "projections"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    refused: dict[str, str] = {}
    today = "".join(one.read_text() for one in ROOT.glob("[ps]*/**/queries.sql"))
    with (
        tarfile.open(fileobj=BytesIO(packed)) as archive,
        psycopg.connect(module_database_url, autocommit=True) as owner,
    ):
        paths = [path for path in archive.getnames() if path.endswith("queries.sql")]
        assert len(paths) > 20
        for path in paths:
            file = archive.extractfile(path)
            assert file is not None
            for name, text in STATEMENT.findall(file.read().decode()):
                found: list[str] = []
                if PLANNED.search(text) and text.strip() not in today:
                    found = [refusal(owner, text, ledger) for ledger in LEDGERS]
                if found and all(found):
                    refused[f"{path}:{name}"] = found[0]
    assert refused.keys() == GONE.keys(), refused


def refusal(owner: psycopg.Connection, text: str, ledger: str) -> str:
    """Return why a statement cannot be planned on a ledger; empty where it can."""
    statement = text.replace("ledger.", f"{ledger}.").strip().removesuffix(";")
    try:
        owner.execute(f"prepare one as {statement}".encode())
    except psycopg.errors.IndeterminateDatatype:
        return ""  # its names are known: parameters alone are not
    except psycopg.Error as error:
        return str(error).partition("\n")[0]
    owner.execute("deallocate one")
    return ""


def test_a_name_that_is_gone_is_refused(module_database_url):
    """A column, a table, and a function's parameters."""
    with psycopg.connect(module_database_url, autocommit=True) as owner:
        for text in (
            "select gone from ledger.log",
            "delete from ledger.gone",
            "select ledger.write(1)",
        ):
            assert "does not exist" in refusal(owner, text, "live")
        assert refusal(owner, "select $1 from ledger.log", "live") == ""
