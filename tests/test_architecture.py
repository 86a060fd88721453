"""The tree keeps to what ARCHITECTURE.md and pyproject.toml say of it."""

import ast
import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

from service.evidence.replay.state import SHOWN
from service.ledger.sql import Queries, queries
from tests.imports import imported

ROOT = Path(__file__).parents[1]
CODE = [
    path for top in ("service", "projections", "migrations") for path in (ROOT / top).rglob("*.py")
]
QUERIES = sorted(
    ".".join(path.parent.relative_to(ROOT).parts)
    for top in ("service", "projections")
    for path in (ROOT / top).rglob("queries.sql")
)


HOMES = {
    "alembic": ["migrations"],
    "asyncpg": [
        "service/ledger",
        "service/cli/projections/status.py",  # shows what kept it from dropping a rebuild's tables
        "service/cli/outage.py",  # says why the database does not answer
        "service/cli/target.py",  # tells its errors from a bug
        "service/privacy/erasures.py",  # knows a lock that is held, and a table that is gone
    ],
    "aiosmtplib": ["service/mail"],
    "eventsourcing": ["service/evidence/replay"],
    "google": ["service/app", "service/storage"],
    "mcp": ["service/cli/mcp"],
    "opentelemetry": ["service/operations/tracing"],
    "psycopg": ["migrations", "service/evidence/replay"],  # of Alembic, and of `eventsourcing`
    "redis": ["service/http/rate_limit"],
    "reportlab": ["service/evidence/report"],
    "sqlite3": ["service/evidence/verify"],
    "webauthn": ["service/people"],
}
"""Where a library of the outside may be imported: its errors and types stop there."""
HTTPX_CALLS = {"AsyncClient", "Client", "delete", "get", "head", "patch", "post", "put", "request"}
OTHERS_SQL = {
    "service/evidence/replay/independent_recorder.py",  # extends a statement of the library's
    "service/evidence/verify/streams.py",  # is SQLite's
    "service/privacy/find.py",  # names columns as PostgreSQL's catalogue has them
}
"""Statements outside `service/ledger`, which puts some together, that stand in no queries.sql."""
TEAM_ALONE = "the service's team alone makes it longer"
A_LINK = "a link is used once, and perhaps erased: three events"
A_CLAIM = "a claim has all its documents from the start, and few stages"
WHOLE_STREAMS = {
    "service/claims/commands.py move": A_CLAIM,
    "service/claims/commands.py show": A_CLAIM,
    "service/connections/commands.py _usable": A_LINK,
    "service/connections/commands.py answer": A_LINK,
    "service/documents/checks.py _flag": A_CLAIM,
    "service/entities/commands.py add": "a command line reads it, and nobody else waits",
    "service/evidence/checkpoints/lineage.py read_lineages": "one event each time a log is cut",
    "service/evidence/set_aside.py take_back": "an event is taken back once",
    "service/mail/composing.py _magic_link": "an onboarding starts, and is completed",
    "service/onboardings/commands.py _of_link": "an onboarding starts, and is completed",
    "service/onboardings/commands.py complete": "the business is new: nobody has chosen anything",
    "service/pages/console/links.py link": A_LINK,
    "service/partners/reviews.py look": TEAM_ALONE,
    "service/partners/reviews.py save": TEAM_ALONE,
    "service/people/staff.py list": TEAM_ALONE,
    "service/people/staff.py newest_stream": TEAM_ALONE,
}
"""Where all events of a stream are decoded at once, and why they are few."""
OUTAGE = re.compile(r"\bLedger(Error|Unavailable)\b")
READS = re.compile(r"await ([\w.]+\.)?(\w*transaction|accounts|live|ledgers?(\[\w+\])?)\.read\(")


def layers() -> list[str]:
    """Return the names in the layered import contract, from the top down."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = [one for one in linter["contracts"] if one["type"] == "layers"]
    return [name.strip() for layer in contract["layers"] for name in layer.split("|")]


def folders() -> set[str]:
    """Return every first-level part of the service, and the other packages."""
    of_service = {
        f"service.{path.stem}"
        for path in (ROOT / "service").iterdir()
        if not path.name.startswith("_")
    }
    return of_service | {"projections", "migrations"}


def test_the_layered_contract_names_every_folder():
    """A folder that is not on a floor could import what it likes."""
    assert sorted(layers()) == sorted(folders())


def test_the_project_is_built_anew_for_its_sources_and_not_for_bytecode():
    """`uv run` would build it again after each command that was the first to import a module."""
    keys = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["cache-keys"]
    built_for = {path for key in keys for path in ROOT.glob(key["file"]) if path.is_file()}
    packages = ("service", "projections", "migrations")
    sources = {path for name in packages for path in (ROOT / name).rglob("*") if path.is_file()}
    bytecode = {path for path in sources if path.suffix == ".pyc"}
    assert built_for == sources - bytecode | {ROOT / "pyproject.toml"}


def test_type_only_imports_count():
    """The linter is not told to leave them out."""
    assert "exclude_type_checking_imports" not in (ROOT / "pyproject.toml").read_text()


def rows(document: str) -> dict[str, str]:
    """Return what a document's tables of folders say of each: `a/{b,c}/` are `a/b` and `a/c`."""
    found: dict[str, str] = {}
    for name, text in re.findall(r"^\| `([^`]+)` \| (.*) \|$", document, re.MULTILINE):
        before, braced, names = name.rstrip("/").rstrip("}").partition("{")
        found |= dict.fromkeys(
            [before + one for one in names.split(",")] if braced else [name], text
        )
    return {name.rstrip("/"): text for name, text in found.items()}


def test_the_maps_name_every_folder():
    """ARCHITECTURE.md has a line for each of the product, README.md for each at the top."""
    paths = {name.replace(".", "/") for name in folders()}
    described = rows((ROOT / "ARCHITECTURE.md").read_text())
    assert paths <= set(described)
    inner = {
        (path, below.name)
        for path in paths - {"service/pages", "projections", "migrations"}
        for below in (ROOT / path).iterdir()
        if (below / "__init__.py").exists()
    }
    unnamed = {one for one in inner if f"`{one[1]}/`" not in described[one[0]]}
    assert ("service/evidence", "report") in inner
    assert unnamed == set()
    top = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "."}
    made = {line.strip("/") for line in (ROOT / ".gitignore").read_text().split()}
    assert set(rows((ROOT / "README.md").read_text())) == top - made


def test_no_public_class_name_is_defined_twice():
    """Whoever searches for a name finds one thing."""
    found = defaultdict[str, list[str]](list)
    for path in CODE:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_an_outage_is_logged_by_its_cause():
    """`LedgerUnavailable` says nothing: the runbook has a line for what it was raised from."""
    hidden = [
        f"{path}:{node.lineno}"
        for folder in ("service", "projections")
        for path in Path(folder).rglob("*.py")
        if OUTAGE.search(text := path.read_text())  # else there is nothing to look for
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ExceptHandler | ast.If)
        and OUTAGE.search(ast.unparse(node).partition(":\n")[0])
        and any("error_type=type(error)." in ast.unparse(one) for one in node.body)
    ]
    assert hidden == []


def test_queries_are_used():
    """Some module runs each statement, by its name or by one that it puts together."""
    used = {("service.evidence.replay", name) for name in SHOWN}  # shown by a query of its name
    begun = set[tuple[str, str]]()
    for path in CODE:
        text = path.read_text()
        used |= set(re.findall(r"queries\(\"([\w.]+)\"\)\.(\w+)", text))
        for name, package in re.findall(
            r"^(\w+)(?:: Final)? = queries\(\"([\w.]+)\"\)$", text, re.MULTILINE
        ):
            used |= {(package, one) for one in re.findall(rf"\b{name}\.(\w+)", text)}
            begun |= {(package, one) for one in re.findall(rf"\b{name}\[f\"(\w+)\{{", text)}
    unused = {
        (package, name)
        for package in QUERIES
        for name in vars(queries(package))
        if name[0] != "_"
        and (package, name) not in used
        and not any(package == of and name.startswith(start) for of, start in begun)
    }
    assert unused == set()


def test_queries_that_modules_run_exist():
    """A misspelt query is found here, and not by the request that needs it."""
    unknown: list[tuple[str, str, str]] = []
    for path in CODE:
        text = path.read_text()
        own = re.search(r"^_SQL(?:: Final)? = queries\(\"([\w.]+)\"\)", text, flags=re.MULTILINE)
        asked = [(own[1], name) for name in re.findall(r"\b_SQL\.(\w+)", text)] if own else []
        asked += re.findall(r"queries\(\"([\w.]+)\"\)\.(\w+)", text)
        unknown += [(path.name, *one) for one in asked if one[1] not in vars(queries(one[0]))]
    assert unknown == []


def test_the_order_within_a_stream_is_judged_alike():
    """The worker's checkpoints and its verification have the same text for it (`in_order`)."""
    texts = {
        re.sub(r"(?s).*?^    \(\n(.*)^    \) as in_order\n.*", r"\1", sql.text, flags=re.MULTILINE)
        for sql in (
            queries("service.evidence.checkpoints").macs,
            queries("service.evidence.verify").slices_rows,
        )
    }
    assert len(texts) == 1, "what you change of `in_order` in one of them, change in the other"
    assert texts.pop().lstrip().startswith("select\n            count(*) = least(")


def has_a_star(text: str) -> bool:
    """Return whether what a statement returns or writes follows the columns of its tables.

    A star within brackets does not, where the list around it names columns: as in a subquery.
    """
    text = statement = re.sub(r"--.*", "", text)
    while not re.search(r"\binsert\b", text):
        less = re.sub(r"\([^()]*\)", "", text)
        if less == text:
            break
        text = less
    if not re.search(r"\b(?:select|insert|update|delete)\b", text):  # all of it is in brackets
        text = statement
    # Arrays that the statement was given have the columns that it was given.
    star = r"(?:\bselect|\bdistinct|\breturning|,)\s+(?:\w+\.)?\*(?!\s*from unnest\b)"
    return re.search(star, text) is not None


def test_queries_name_their_columns():
    """A statement that is prepared returns the same after a migration has added a column."""
    found = {
        (package, name)
        for package in QUERIES
        for name, sql in vars(queries(package)).items()
        if name[0] != "_" and has_a_star(sql.on("ledger"))
    }
    assert found == set()
    for text in (
        "select * from ledger.a",
        "select b, a.* from (select b from ledger.a) as a",
        "with a as (select b from ledger.a) select distinct * from a",
        "with a as (insert into ledger.a select * from ledger.b) select b from a",
        "delete from ledger.a returning *",
        "(select * from ledger.a) union all (select * from ledger.b)",
    ):
        assert has_a_star(text), text
    assert not has_a_star("select a.b from (select l.* from ledger.a as l) as a")
    assert not has_a_star("insert into ledger.a (b) select * from unnest($1::text[])")


def test_queries_return_columns_alone():
    """Citus refuses functions in `returning` that do something, such as a notification."""
    calls = re.compile(r"\breturning\b[^()]*\w\(")
    found = {
        (package, name)
        for package in QUERIES
        for name, sql in vars(queries(package)).items()
        if name[0] != "_" and calls.search(re.sub(r"--.*", "", sql.on("ledger")))
    }
    assert found == set()


def test_statements_stand_in_queries_sql():
    """Outside the event store no module has SQL in it, but for what is put together there."""
    begins = re.compile(
        r"\s*(select\s|insert\s+into\s|update\s+\S+\s+(as\s+\w+\s+)?set\s|delete\s+from\s|with\s+\w+\s+as\s)"
    )
    found: set[str] = set()
    for path in CODE:
        name = str(path.relative_to(ROOT))
        if name.startswith(("service/ledger/", "migrations/")):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= {name} if begins.match(node.value) else set()
    assert found == OTHERS_SQL, (
        "a statement belongs in its folder's queries.sql (CONTRIBUTING.md); if it cannot stand "
        "there, name its module in OTHERS_SQL with the reason; take out a module that has none now"
    )


def test_streams_are_read_in_parts():
    """People make most of them as long as they like: whoever needs more folds, or reads a part.

    What is decoded at once holds up all other requests, and everything else that a worker does.
    """
    found = dict[ast.Await, str]()
    for path in CODE:
        if ".read(" not in (text := path.read_text()):
            continue
        for function in ast.walk(ast.parse(text)):  # the outer ones first
            if isinstance(function, ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    if isinstance(node, ast.Await) and READS.match(ast.unparse(node)):
                        found.setdefault(node, f"{path.relative_to(ROOT)} {function.name}")
    assert set(found.values()) == set(WHOLE_STREAMS), (
        "fold the stream (`fold`) or read a part of it; if it stays short whatever people do, name "
        "the function in WHOLE_STREAMS with the reason, and take out one that reads none now"
    )


def test_libraries_of_the_outside_stay_in_their_homes():
    """Whoever replaces one, or reads what it raises, has one place to look."""
    found = defaultdict[str, set[str]](set)
    for path in CODE:
        name = str(path.relative_to(ROOT))
        for library in imported(path) & set(HOMES):
            homes = [one for one in HOMES[library] if f"{name}/".startswith(f"{one}/")]
            found[library] |= set(homes) or {f"{name} is no home of it"}
    assert found == {library: set(homes) for library, homes in HOMES.items()}, (
        "import the library in one of its homes, and have them raise errors of ours; if it needs "
        "another, add that to HOMES with the reason, and take out one that does not import it now"
    )


def test_a_query_without_a_description_is_refused(tmp_path, monkeypatch):
    """The file is refused as a whole, and not read as a part of the query before."""
    (tmp_path / "undescribed").mkdir()
    (tmp_path / "undescribed" / "__init__.py").touch()
    (tmp_path / "undescribed" / "queries.sql").write_text("-- name: one\nselect 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match="before its first named query"):
        Queries("undescribed")


def test_the_changelog_says_each_thing_once():
    """Its headings are those of Keep a Changelog, in order; no entry is there twice, or empty."""
    text = (ROOT / "CHANGELOG.md").read_text().partition("## [Unreleased]")[2].partition("\n## ")[0]
    headings = re.findall(r"^### (.+)$", text, re.MULTILINE)
    order = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
    assert headings == [one for one in order if one in headings]
    groups = re.findall(r"^#### (.+)$", text, re.MULTILINE)
    lines = re.findall(r"^- .+$", text, re.MULTILINE)
    assert len(lines) > 100
    assert [one for one in set(lines) if lines.count(one) > 1] == []
    assert [one for one in set(groups) if groups.count(one) > 1] == []
    assert re.findall(r"^[^#\n].*\n\n- .*", text, re.MULTILINE) == []  # no gap in a list


def test_pages_are_tested_served_or_in_process():
    """A module that did both would run two loops, and wait in one for the other."""
    both = re.compile(r"\b(site|world)\b")
    mixed: set[str] = set()
    for path in (ROOT / "tests/pages").glob("test_*.py"):
        asked = {
            one.arg
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name.startswith("test_")
            for one in node.args.args
            if both.fullmatch(one.arg)
        }
        mixed |= {path.name} if len(asked) == 2 else set()
    assert mixed == set()


def test_what_tests_share_stands_in_helpers():
    """No module imports from a test module or a conftest: each can be read, moved and run alone."""
    shared = re.compile(
        r"^\s*(?:from|import) tests(?:\.\w+)*\.(?:test_\w+|conftest)\b", re.MULTILINE
    )
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("*.py")
        if shared.search(path.read_text())
    }
    assert found == set()


def test_what_tests_call_has_time():
    """A deadline that is short by default would make a busy machine's test fail.

    httpx gives up after five seconds, a service's piece of work after its own deadline. Where that
    is what a test is about, it says so. Benchmarks, drills and the soak work under the real ones.
    """
    hurried = {
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / "tests").rglob("*.py")
        if path.relative_to(ROOT / "tests").parts[0] not in {"bench", "drills", "soak"}
        if re.search(r"\bhttpx\.|\bService\(", text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and _is_hurried(node)
    }
    assert hurried == set()


def _is_hurried(call: ast.Call) -> bool:
    """Return whether a call leaves its deadline to what is called."""
    given = {one.arg for one in call.keywords}
    match call.func:
        case ast.Name("Service"):
            return given.isdisjoint({"deadline_seconds", None})
        case ast.Attribute(ast.Name("httpx"), name) if name in HTTPX_CALLS:
            return given.isdisjoint(
                {"timeout", "transport"}
            )  # a transport in this process has none
        case _:
            return False
