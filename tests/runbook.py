"""The blocks of deploy/runbook.md, for the tests that try them."""

import re
from pathlib import Path

PATH = Path(__file__).parents[1] / "deploy" / "runbook.md"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    """Return the text of every block of a language, in order; "" is no language."""
    return [text for name, text in _BLOCK.findall(PATH.read_text()) if name == language]


def block(language: str, beginning: str) -> str:
    """Return the one block that begins so."""
    (found,) = [text for text in blocks(language) if text.startswith(beginning)]
    return found


def outages() -> set[str]:
    """Return each `error_type` that the page has a line for: what PostgreSQL is, and what to do."""
    return {name for names, _ in outage_rows() for name in names}


def outage_rows() -> list[tuple[list[str], str]]:
    """Return the names of each line of that table, and what PostgreSQL is or does."""
    table = PATH.read_text().partition("| `error_type` | PostgreSQL |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines()[2:]]
    return [(re.findall(r"`(\w+)`", names), what.strip()) for names, what in rows]


def connections() -> dict[str, tuple[int, int]]:
    """Return a login's limit and the least `max_connections` of each installation, by its folder.

    The first, of no folder, is "".
    """
    table = PATH.read_text().partition("| installation | LIMIT |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1:4] for line in table.splitlines()[2:]]
    folders = [re.findall(r"`(deploy/[^`]+)`", what) for what, _, _ in rows]
    found = [
        (int(limit.split()[-1]), int(re.findall(r"\d+", least)[0])) for _, limit, least in rows
    ]
    return {(names or [""])[-1]: one for names, one in zip(folders, found, strict=True)}


def anchors() -> set[str]:
    """Return what links can point to: headings as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", PATH.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}
