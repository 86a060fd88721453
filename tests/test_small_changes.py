"""The common changes of ARCHITECTURE.md: they touch the files that it names."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from service.claims.wire import ClaimRequest
from tests.facts.request_fields import next_version, stored
from tests.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[1]
TABLE = re.findall(
    r"^\| (.+?) \| (.+) \|$",
    (ROOT / "ARCHITECTURE.md").read_text().partition("## Common changes")[2].partition("## ")[0],
    flags=re.MULTILINE,
)
FILES = {change: re.findall(r"`([^`]+)`", files) for change, files in TABLE}

REQUEST = """    currency: Annotated[
        Text | UnsetType, described("Currency of the invoices.", "EUR", extra={{"since": {since}}})
    ] = UNSET
"""
SHOWN = '    currency: Annotated[str | None, described("Null when none was given.", "EUR", None)]\n'
REVISION = '''"""A claim's currency."""

from migrations.apply import PARTNER_LEDGERS, run

revision = "0099"
down_revision = "{newest}"


def upgrade() -> None:
    """Add the column."""
    run("0099_currency.sql", PARTNER_LEDGERS)
'''


@pytest.fixture
def tree(tmp_path) -> Path:
    """Return a copy of the code, which a change may be made to."""
    copy = tmp_path / "tree"
    for folder in ("service", "projections", "migrations"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "tests").symlink_to(ROOT / "tests")
    return copy


def insert(path: Path, before: str, text: str) -> None:
    """Insert a text before the one place that has `before`."""
    old = path.read_text()
    assert old.count(before) == 1, f"this test's anchor is gone: {before!r}, in {path}"
    path.write_text(old.replace(before, text + before))


def select(path: Path, query: str) -> None:
    """Have a query select the new column, too, after `created_at` in its list."""
    before, name, after = path.read_text().partition(f"-- name: {query}\n")
    text, count = re.subn(r"(?m)((?:\w\.)?)created_at\b", r"\g<0>, \1currency", after, count=1)
    assert count, f"this test's anchor is gone: {query} of {path} does not select created_at"
    path.write_text(before + name + text)


def changed(tree: Path) -> list[str]:
    """Return the files that the copy has other than we do, sorted."""
    paths = [path for path in tree.rglob("*") if path.is_file() and "tests" not in path.parts]
    return sorted(
        str(path.relative_to(tree))
        for path in paths
        if not (ours := ROOT / path.relative_to(tree)).exists()
        or ours.read_bytes() != path.read_bytes()
    )


def test_the_table_names_files_that_exist():
    """Placeholders aside, each file of the table is there."""
    named = {file for files in FILES.values() for file in files if "<" not in file}
    assert len(FILES) >= 4
    assert {file for file in named if not (ROOT / file).exists()} == set()


def test_a_field_of_a_claim_that_the_list_shows(tree, database_url, tmp_path):
    """The files that ARCHITECTURE.md names are enough: it is posted, stored, compared and shown."""
    wire = tree / "service/claims/wire.py"
    since = next_version(stored(ClaimRequest))
    insert(wire, "    message: Annotated[\n        Message", REQUEST.format(since=since))
    insert(wire, '\n\nCLAIM_ID: Final = "', SHOWN)  # ours come after the contract's
    insert(
        tree / "service/facts/claims.py",
        "    details: dict[str, Any] | None = None",
        "    currency: str | None = None\n",
    )
    insert(
        tree / "projections/claim_list/projector.py",
        "created_at timestamptz",
        "currency text, ",
    )
    for query in ("by_id", "page"):
        select(tree / "projections/claim_list/queries.sql", query)
    select(tree / "service/evidence/replay/queries.sql", "claim_list")
    insert(
        tree / "service/evidence/replay/independent.py",
        '            "stage": FIRST_STAGE,',
        '            "currency": data.get("currency"),\n',
    )
    newest = max(path.name for path in (ROOT / "migrations/versions").glob("0*.py"))[:4]
    (tree / "migrations/versions/0099_currency.py").write_text(REVISION.format(newest=newest))
    (tree / "migrations/sql/0099_currency.sql").write_text(
        "-- What the invoices are in.\nalter table ledger.claim_list add column currency text;\n"
    )
    expected = [
        file.replace("<revision>", "0099_currency")
        for file in FILES["a field of `POST /claims` that `GET /claims` shows"]
    ]
    assert sorted(expected) == changed(tree)
    walked = run(tree, "tests.walked_field", database_url, str(tmp_path / "mail"))
    *_log, shown = walked.splitlines()
    found = json.loads(shown)
    for place in ("listed", "alone", "replayed", "independent"):
        assert found[place] == found["expected"], place
    assert found["pages"] == [200, 200]
    # None of the replays' tests may stand for the next field, which is not stored yet.
    replays = ("tests/facts/test_replays.py", "-k", "not test_the_fields_of_a_version_stay")
    assert "passed" in run(tree, "pytest", "-q", "--noconftest", "-p", "no:cacheprovider", *replays)


def run(tree: Path, module: str, *arguments: str) -> str:
    """Run a module with the copy's code, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
