"""docs/security.md lists every threat and requirement, and tests that exist."""

import re
from pathlib import Path

from tests.tables import every_row

DOCUMENT = Path("docs/security.md")
NUMBERS = Path("tests/asvs_5.0_levels_1_and_2.txt")
STATES = {"tested", "documented", "operator", "not met", "n/a"}
THREATS = 22
"""Of the threat model; what a penetration test added is beside them."""


def rows(heading):
    """Return the cells of each row of the tables under a heading of the document."""
    part = DOCUMENT.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row[0] not in {"number", "attack"}]


def named_in(text):
    """Return the tests that a text names."""
    return re.findall(r"`([\w/]+\.py::\w+)`", text)


def existing_tests():
    """Return the name of every test."""
    return {
        f"{path.relative_to('tests')}::{name}"
        for path in Path("tests").rglob("test_*.py")
        for name in re.findall(r"^\s*(?:async )?def (\w+)\(", path.read_text(), re.MULTILINE)
    }


def anchors(path):
    """Return the anchors of a document's headings."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}


def test_every_test_that_the_document_names_exists():
    """A renamed or removed test takes its line with it."""
    named = set(named_in(DOCUMENT.read_text()))
    assert named
    assert sorted(named - existing_tests()) == []


def test_every_threat_has_a_test():
    """Each attack has a defence and a test that shows it, or says plainly that it has not."""
    listed = rows("Threats") + rows("What a penetration test found")
    assert len(rows("Threats")) == THREATS
    with every_row() as row:
        for attack, defence, shown in listed:
            with row(attack):
                assert defence
                assert named_in(shown) or shown.startswith("not met: ")


def test_every_requirement_is_listed_once():
    """Of levels 1 and 2, with its level."""
    known = dict(
        line.split() for line in NUMBERS.read_text().splitlines() if not line.startswith("#")
    )
    listed = [number for row in rows("OWASP ASVS 5.0") for number in row[0].split(", ")]
    assert sorted(listed) == sorted(known)
    levels = {number: row[1] for row in rows("OWASP ASVS 5.0") for number in row[0].split(", ")}
    assert {one: level for one, level in levels.items() if level != known[one]} == {}


def test_every_requirement_says_what_shows_it():
    """A test, a document, a duty of the operator, or why it is not met or does not apply."""
    with every_row() as row:
        for number, _, state, what, shown in rows("OWASP ASVS 5.0"):
            with row(number):
                assert state in STATES
                assert what
                assert bool(named_in(shown)) == (state == "tested")
                if state == "documented":
                    (link,) = re.findall(r"\]\(([^)]+)\)", shown)
                    name, _, anchor = link.partition("#")
                    path = DOCUMENT.parent / name if name else DOCUMENT
                    assert anchor in anchors(path)
