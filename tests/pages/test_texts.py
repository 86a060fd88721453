"""The texts of the pages: those used exist, and those that exist are used."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import Formatter

import jinja2
from jinja2 import nodes

from service.core.errors import ERRORS
from service.facts.claims import STAGES
from service.pages.shell import TEMPLATES
from service.pages.words import TEXTS, text
from service.sandbox.triggers import TRIGGERS
from tests.endpoints import ENDPOINTS

PAGES = Path("service/pages")
REFUSED = re.compile(r"refused\.(\w+)\.(title|advice)")
OUTSIDE = {
    *("auth_missing", "auth_invalid_format", "auth_unknown_partner", "auth_revoked"),
    *("auth_bad_secret", "invalid_json", "body_required", "document_path_invalid"),
    *("document_not_uploaded", "document_verification_failed", "partner_disconnected"),
    *("claim_conflict", "onboarding_not_found", "staff_not_found", "link_not_found"),
    *("reference_used", "host_unknown", "staff_present"),
}
"""Codes that no page meets: of the partner API, of the team's commands, and of what is refused
before anything is looked for."""

Use = tuple[str, str, frozenset[str] | None]
"""Where, which text, which values; None: the values are not seen there."""


def template_uses() -> Iterator[Use]:
    """Return each `t(…)` of a template, and each text that a template names."""
    for name in TEMPLATES.list_templates():
        source = (PAGES / "templates" / name).read_text()
        tree = jinja2.Environment(autoescape=True).parse(source)
        called: set[int] = set()
        for call in tree.find_all(nodes.Call):
            if isinstance(call.node, nodes.Name) and call.node.name == "t" and call.args:
                for first in constants(call.args[0]):
                    called.add(id(first))
                    yield name, first.value, frozenset(one.key for one in call.kwargs)
        for constant in tree.find_all(nodes.Const):
            if id(constant) not in called and constant.value in TEXTS:
                yield name, constant.value, None


def constants(node: nodes.Node) -> list[nodes.Const]:
    """Return the literal names of a text: one, or the branches of a condition."""
    if isinstance(node, nodes.Const):
        return [node]
    if isinstance(node, nodes.CondExpr):
        return [
            one for side in (node.expr1, node.expr2) if side is not None for one in constants(side)
        ]
    return []


def code_uses() -> Iterator[Use]:
    """Return each `text(…)` of the code, and each text that the code names."""
    for file in sorted(PAGES.rglob("*.py")):
        tree = ast.parse(file.read_text())
        called: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                first = node.args[0]
                if node.func.id == "text" and isinstance(first, ast.Constant):
                    called.add(id(first))
                    values = frozenset(one.arg for one in node.keywords if one.arg)
                    yield str(file), str(first.value), values
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and id(node) not in called and node.value in TEXTS:
                yield str(file), str(node.value), None


def prefixes() -> set[str]:
    """Return the beginnings of computed names: `f"a.{…}"`, `"a." ~ …`, or `stored("a", …)`."""
    found: set[str] = set()
    for file in PAGES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
                found.add(str(node.values[0].value))
    for name in TEMPLATES.list_templates():
        source = (PAGES / "templates" / name).read_text()
        tree = jinja2.Environment(autoescape=True).parse(source)
        for joined in tree.find_all(nodes.Concat):
            first = joined.nodes[0]
            if isinstance(first, nodes.Const):
                found.add(str(first.value))
        for call in tree.find_all(nodes.Call):
            if isinstance(call.node, nodes.Name) and call.node.name == "stored":
                found.update(f"{first.value}." for first in constants(call.args[0]))
    return {one for one in found if re.fullmatch(r"[a-z_]+(\.[a-z_]+)*[._]", one)}


@cache
def uses() -> list[Use]:
    """Return every use; finding them takes a while, which only the process with these tests has."""
    return [*template_uses(), *code_uses()]


def placeholders(name: str) -> set[str]:
    """Return the placeholders of a text."""
    return {field for _, field, _, _ in Formatter().parse(TEXTS[name]) if field}


def test_every_used_text_exists():
    """No page fails because of a missing text."""
    assert [(where, name) for where, name, _ in uses() if name not in TEXTS] == []


def test_every_use_gives_the_text_s_values():
    """Each use fills all placeholders and passes no other value."""
    wrong = [
        (where, name, sorted(values), sorted(placeholders(name)))
        for where, name, values in uses()
        if values is not None and name in TEXTS and values != placeholders(name)
    ]
    assert wrong == []


def test_every_text_is_used():
    """No text is left over."""
    used = {name for _, name, _ in uses()}
    begun = tuple(prefixes())
    unused = [one for one in TEXTS if one not in used and not one.startswith(begun)]
    assert unused == []


def test_stages_have_texts():
    """People read `Letter before action`, never `letter_before_action`."""
    assert [stage for stage in STAGES if f"stage.{stage}" not in TEXTS] == []


def test_refusals_have_texts():
    """Each code that a page can meet explains what happened and what to do next."""
    lacking = [
        f"refused.{code}.{part}"
        for code in ERRORS.keys() - OUTSIDE
        for part in ("title", "advice")
        if f"refused.{code}.{part}" not in TEXTS
    ]
    assert sorted(lacking) == []


def test_refusals_of_the_texts_are_codes():
    """No text is kept for a code that is gone or that no page meets."""
    codes = {found[1] for name in TEXTS if (found := REFUSED.fullmatch(name))}
    assert codes - ERRORS.keys() == {"other"}
    assert codes & OUTSIDE == set()
    assert ERRORS.keys() >= OUTSIDE


def test_the_sandbox_names_triggers_of_each_of_its_endpoints():
    """And the path of each: elsewhere such a reference is one like any other."""
    said = text("sandbox.triggers_lead")
    common = set.intersection(*map(set, TRIGGERS.values()))
    assert set(re.findall(r"trigger_(\w+)", said)) == common
    paths = {ENDPOINTS[name].template for name in TRIGGERS}
    assert set(re.findall(r"<code>(?:POST )?(/[\w/-]+)</code>", said)) == paths


def test_values_are_escaped():
    """Values are shown as text; only our own texts are markup."""
    for name in TEXTS:
        wanted = placeholders(name)
        shown = text(name, **dict.fromkeys(wanted, "<script>alert(1)</script>"))
        assert "<script>" not in shown, name
        assert shown.count("&lt;script&gt;") >= len(wanted), name


def test_what_nobody_sees_is_shown():
    """In every value of every text, and in whatever a template prints."""
    for name in TEXTS:
        shown = text(name, **dict.fromkeys(placeholders(name), "a\u202eb"))
        assert "\u202e" not in shown, name
    source = '{{ a }}<i title="{{ a }}">{{ [a, a] | join("; ") }}{{ {"x": a}.x }}</i>'
    printed = TEMPLATES.from_string(source).render(a="<\u202e>")
    assert printed.count("&lt;[U+202E]&gt;") == printed.count("202E") == 5


def test_texts_are_written_alike():
    """With straight apostrophes, and one word each for an email and for a repair."""
    words = re.compile(r"\u2019|\b[Mm]ails?\b|\b[Mm]end(?:s|ed)?\b")
    found = {name: words.findall(one) for name, one in TEXTS.items() if words.search(one)}
    assert found == {}
