"""No revision keeps requests waiting: what is locked, how long, and how much is written at once."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrations.apply import SQL, statements

pytestmark = pytest.mark.server  # it starts squawk

SQUAWK = Path(sys.executable).with_name("squawk")
NOT_OURS = {
    "prefer-robust-stmts": "a revision is applied once, in a transaction, or is run_concurrently",
    "require-lock-timeout": "migrations/env.py sets it for all",
    "require-statement-timeout": "migrations/env.py: making an index may take its time",
    "prefer-bigint-over-int": "an int is what it is: a version, a count of attempts",
    "prefer-bigint-over-smallint": "as an int",
}
INDEX, WRITES = "require-concurrent-index-creation", "writes-rows-that-are-there"
ALLOWED = {
    ("0001_ledger.sql", WRITES): "its tables are new; the role is made where it is missing",
    # Released before this rule: the tables were small, or the runbook names the revision.
    ("0003_audit.sql", "adding-not-nullable-field"): "with 0003, which takes a window",
    ("0003_audit.sql", WRITES): "with 0003, which takes a window",
    ("0003_mail.sql", INDEX): "with 0003, which takes a window",
    ("0003_privacy.sql", INDEX): "with 0003, which takes a window",
    ("0007_console_lists.sql", INDEX): "before the first installation",
    ("0008_backoffice.sql", INDEX): "before the first installation",
    ("0011_mail_recipients.sql", INDEX): "before the first installation",
    ("0011_sign_in_recipients.sql", INDEX): "links of a day",
    ("0014_session_use.sql", INDEX): "sessions of a day",
    ("0016_bound_sessions.sql", WRITES): "sessions and links of a day",
    ("0020_log_without_reference.sql", "ban-drop-constraint"): "the release before needs none",
    ("0040_several_lines.sql", "ban-drop-constraint"): "the release before names it nowhere",
    ("0044_request_hours.sql", WRITES): "its table is new; what it reads is not locked",
}
"""What a file may do all the same, and why."""
FUNCTION = re.compile(r"create (?:or replace )?function .*?\$\$.*?\$\$", re.DOTALL)
WRITE = re.compile(r"^\s*(?:update|delete|truncate|do|insert\b[^;]*\bselect)\b", re.MULTILINE)
BY_THE_CLOCK = re.compile(
    r"^\s*insert\b[^;]*\bselect\b[^;]*\b(?:now\(\)|current_date|current_timestamp)", re.MULTILINE
)


def runners() -> dict[str, str]:
    """Return by which function of `apply` each file is run; a revision has one, or `run` alone."""
    found: dict[str, str] = {}
    for path in sorted((SQL.parent / "versions").glob("*.py")):
        calls = [
            (one.func.id, one.args[0].value)
            for one in ast.walk(ast.parse(path.read_text()))
            if isinstance(one, ast.Call)
            and isinstance(one.func, ast.Name)
            and isinstance(one.args[0], ast.Constant)
        ]
        found |= {str(name): how for how, name in calls}
        # What is run again after it was cut short has nothing beside it that would be done twice.
        assert len(calls) == 1 or {how for how, _ in calls} == {"run"}, path.name
    return found


def squawks(paths: list[Path], *options: str) -> Iterator[tuple[str, str]]:
    """Yield the file and the rule of everything that squawk finds."""
    excluded = f"--exclude={','.join(NOT_OURS)}"
    done = subprocess.run(
        [SQUAWK, "--pg-version=15", "--reporter=json", excluded, *options, *paths],
        capture_output=True,
        text=True,
        check=False,
    )
    for one in json.loads(done.stdout):
        yield Path(one["file"]).name, one["rule_name"]


def test_revisions_lock_and_rewrite_nothing_large():
    """By squawk's rules; and rows that are there are written in batches. Exceptions are listed."""
    by_runner = runners()
    assert set(by_runner) == {path.name for path in SQL.iterdir()}
    paths = {how: [SQL / n for n in by_runner if by_runner[n] == how] for how in by_runner.values()}
    found = set(squawks(paths.pop("run"), "--assume-in-transaction"))
    for more in paths.values():
        found |= set(squawks(more))
    for name, how in by_runner.items():
        text = (SQL / name).read_text()
        if WRITE.search(FUNCTION.sub("", text)) and how != "run_in_batches":
            found.add((name, WRITES))
        if how == "run_in_batches":
            assert "%(after)s" in text, name
            assert " limit " in text, name
    assert found == set(ALLOWED)


def test_no_insert_selects_by_the_clock():
    """Citus refuses that, or crashes (docs/scale.md); a part by `with` before the insert may."""
    for path in SQL.iterdir():
        assert not BY_THE_CLOCK.search(FUNCTION.sub("", path.read_text())), path.name


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("alter table ledger.events alter column topic type varchar(9);", "changing-column-type"),
        ("create index made on ledger.events (topic);", INDEX),
        ("alter table ledger.claim_list add column more uuid default gen_random_uuid();",
         "adding-field-with-default"),
        ("alter table ledger.log drop column leaf_hash;", "ban-drop-column"),
    ],
)  # fmt: skip
def test_the_rules_find(tmp_path, text, rule):
    """What rewrites a table, blocks writers, or removes what the release before still reads."""
    path = tmp_path / "9999_bad.sql"
    path.write_text(text)
    assert (path.name, rule) in set(squawks([path], "--assume-in-transaction"))


def test_a_file_is_sent_statement_by_statement():
    """A semicolon in a comment, a text or a body ends none."""
    body = "create function f() as $$ select ';'; -- $$ language sql"
    text = f"-- first; of three\nselect 'a;''b';\n{body};\ndo $x$ $$; c $x$;\n-- end;\n"
    first, second, third = statements(text)
    assert (first, third) == ("-- first; of three\nselect 'a;''b';", "do $x$ $$; c $x$;")
    assert second == f"{body};"
