"""Documents name only what is there: commands, settings, metrics, alerts, recipes, files, links.

What the runbook's commands take in prose is tested in test_runbook.py; what pages for partners run,
in test_snippets.py.
"""

import re
from pathlib import Path

import click

from service.app.settings import SETTINGS
from service.cli import cli
from service.cli.generated_documents import commands
from tests.calls import calls, hold
from tests.monitoring.rules import ALERTS, product_metrics

ROOT = Path(__file__).parents[1]
DOCUMENTS = {
    str(path.relative_to(ROOT)): path.read_text()
    for pattern in ("*.md", "docs/**/*.md", "deploy/**/*.md", "clients/*/README.md")
    for path in ROOT.glob(pattern)
    if "node_modules" not in path.parts
}
OTHERS = {
    "CLAIM_LEDGER_IMAGE",  # what the compose file runs
    "claim_ledger_client",  # the Python client's package
    "ClaimLedgerError",  # of the clients
    # Roles in PostgreSQL: of the ledgers, of backups, and the one of releases before.
    *(f"claim_ledger_{name}" for name in ("accounts", "live", "test", "backup", "service")),
}
"""Names of the same form that no list has."""
COMMANDS = {name.removeprefix("claim-ledger "): one for name, one in commands(cli)}
GROUPS = {name.partition(" ")[0] for name in COMMANDS if " " in name}
# A command of a group as text has it: `audit verify --export FILE`, `claim-ledger staff add EMAIL`.
CALL = re.compile(rf"(?:claim-ledger )?({'|'.join(sorted(GROUPS))}) ([a-z][a-z-]*)(?![\w*:])(.*)")
OURS_BY_NAME = re.compile(
    r"(?:install|uv add|npm i|npx)\s+(?:-\S+\s+)*['\"]?claim[-_]ledger"
    r"|claim[-_]ledger(?:-client)?\[[a-z]"
)
"""A package of ours as an index would have it, not a file or a folder."""
NO_FILES = {
    "deploy/claim-ledger-worker",  # what kubectl calls a deployment
    "deploy/high_availability/archive.sh",  # has another name now, as the changelog says
}
"""What looks like a path of the tree."""
MADE = {line.strip("/") for line in (ROOT / ".gitignore").read_text().split()}
"""What recipes leave in the tree, such as `build`: there or not, whole or in part."""


def spans(text: str) -> list[str]:
    """Return what a document has in backticks, across the ends of lines."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [" ".join(one.split()) for one in re.findall(r"`([^`]+)`", prose)]


def options_of(command: click.Command) -> set[str]:
    """Return the options that a command takes."""
    return {"--help"}.union(*((*one.opts, *one.secondary_opts) for one in command.params))


def unknown_calls(text: str) -> list[str]:
    """Return the calls that name a command or an option that is not there."""
    found: list[str] = []
    for span in spans(text):
        call = CALL.fullmatch(span)
        if call is None:
            continue
        command = COMMANDS.get(f"{call[1]} {call[2]}")
        given = set(re.findall(r"(?<!\S)\[?(--[a-z][a-z-]*)", call[3]))
        if command is None or given - options_of(command):
            found.append(span)
    return found


def anchors(text: str) -> set[str]:
    """Return what links can point to: headings as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}


def dead_links(name: str, text: str) -> list[str]:
    """Return the relative links of a document that lead nowhere."""
    dead: list[str] = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:|mailto:|/", link):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        if not target.exists() or (anchor and anchor not in anchors(target.read_text())):
            dead.append(link)
    return dead


def test_commands_and_their_options_exist():
    """In prose, too: whoever copies one gets no error of usage."""
    assert {name: unknown_calls(text) for name, text in DOCUMENTS.items()} == {
        name: [] for name in DOCUMENTS
    }
    assert unknown_calls(
        "`audit verify --export FILE`, `audit verified`, `staff add --mail x`"
    ) == [
        "audit verified",
        "staff add --mail x",
    ]


def test_commands_of_blocks_are_whole():
    """What they need is there: whoever copies one has only to put in names."""
    called = [
        call
        for name, text in DOCUMENTS.items()
        if name != "docs/ledger-format.md"  # its tags of what is hashed begin like calls
        for call in calls(text)
    ]
    for call in called:
        hold(call)
    assert len(called) > 70
    assert calls("    kubectl exec pod -- claim-ledger documents sweep --as you\n") == [
        "claim-ledger documents sweep --as you"
    ]


def test_links_lead_somewhere():
    """To a file that is there, and a heading of it."""
    assert {name: dead_links(name, text) for name, text in DOCUMENTS.items()} == {
        name: [] for name in DOCUMENTS
    }
    assert dead_links("README.md", "[a](README.md#run-it) [b](README.md#run) [c](NONE.md)") == [
        "README.md#run",
        "NONE.md",
    ]


def test_settings_metrics_and_alerts_exist():
    """A name that is in no list of the product is misspelt, or of before."""
    settings = {one.variable for one in SETTINGS}
    settings |= {one.formerly for one in SETTINGS if one.formerly}
    settings |= {f"{name}_FILE" for name in settings}
    metrics = set(product_metrics())
    bases = {re.sub(r"_(bucket|count|sum|total)$", "", name) for name in metrics}
    known = settings | metrics | bases | OTHERS | set(ALERTS)
    name = re.compile(
        r"\bCLAIM_LEDGER_[A-Z_]*[A-Z]\b|\bclaim_ledger_\w*[a-z]\b|\bClaimLedger[A-Z]\w+"
    )
    assert {doc: set(name.findall(text)) - known for doc, text in DOCUMENTS.items()} == {
        doc: set() for doc in DOCUMENTS
    }


def test_files_and_recipes_exist():
    """Paths from the top of the tree, and recipes of the Justfile."""
    recipes = set(re.findall(r"^([a-z][\w-]*)", (ROOT / "Justfile").read_text(), re.MULTILINE))
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "."}
    tops = "|".join(folders - MADE)
    path = re.compile(rf"(?:{tops})/[\w./-]+")
    lacking = {
        (name, one)
        for name, text in DOCUMENTS.items()
        for one in spans(text)
        if path.fullmatch(one) and one not in NO_FILES and not (ROOT / one).exists()
    }
    assert lacking == set()
    asked = {
        (name, one)
        for name, text in DOCUMENTS.items()
        for line in (*spans(text), *re.findall(r"^ {4}(.*)", text, re.MULTILINE))
        for one in re.findall(r"^(?:uv run )?just ([a-z][\w-]*)", line)
    }
    assert {one for one in asked if one[1] not in recipes} == set()
    assert len(asked) > 30


def test_recipes_are_described_by_a_sentence():
    """`just --list` shows the last line above a recipe alone."""
    lines = (ROOT / "Justfile").read_text().splitlines()
    above = [
        lines[nr - 2 : nr] for nr, line in enumerate(lines) if re.match(r"[a-z][\w-]*.*:", line)
    ]
    assert [last for _, last in above if not re.fullmatch(r"# [A-Z`].*\.", last)] == []
    assert [last for before, last in above if before[:1] == "#" and before[-1] not in ".:"] == []
    assert len(above) > 20


def test_nothing_of_ours_is_installed_from_an_index():
    """Nothing is published there: whoever registers a name would get the reader's machine."""
    texts = DOCUMENTS | {
        str(path.relative_to(ROOT)): path.read_text()
        for folder in ("service", "clients/python/src", "clients/typescript/src")
        for path in (ROOT / folder).rglob("*.[pt]*")
        if path.suffix in {".py", ".ts", ".toml"}
    }
    assert {name: OURS_BY_NAME.findall(text) for name, text in texts.items()} == {
        name: [] for name in texts
    }
    by_name = (
        "pip install 'claim-ledger[dev]'",
        "npm install\nclaim-ledger-client",
        "claim-ledger[kms]",
    )
    of_a_file = (
        "pip install ./claim_ledger-1-py3-none-any.whl",
        "npm install ./claim-ledger-client-1.tgz",
    )
    assert all(OURS_BY_NAME.search(text) for text in by_name)
    assert not any(OURS_BY_NAME.search(text) for text in of_a_file)


def test_the_list_of_what_is_deployed_is_whole():
    """Each file and folder of deploy/ has a link in the first table of its README.md."""
    table = DOCUMENTS["deploy/README.md"].partition("\n## ")[0]
    linked = {link.partition("/")[0] for link in re.findall(r"\]\(([^)]+)\)", table)}
    there = {path.name for path in (ROOT / "deploy").iterdir() if path.name[0] not in "._"}
    assert there - linked == {"README.md"}
