"""Whatever switches a check off says why, in its line or right beside it."""

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOPS = ("service", "projections", "migrations", "deploy", "clients", "tests")
MADE = {".venv", "node_modules", "dist", ".terraform", "__pycache__"}  # by tools, beside ours

CODES = r"(?:: *[A-Z]+\d+(?:, *[A-Z]+\d+)*|\[[\w-]+(?:, *[\w-]+)*\])"
SWITCH = re.compile(
    rf"(?:ruff: *)?noqa\b{CODES}?|(?:type|pyright): *ignore\b{CODES}?"
    r"|(?:shellcheck disable=|eslint-disable|squawk-ignore|@ts-(?:ignore|expect-error|nocheck))\S*"
)
# What a module has to say somewhere before it is worth parsing.
SUSPECT = re.compile(rf"{SWITCH.pattern}|except\b.*Exception\b|except:|suppress|skip|xfail")
BROAD = {"Exception", "BaseException"}
SKIPS = {"skip", "skipif", "xfail"}
# What other languages' files are called, and where a comment of theirs begins.
OTHERS = {".sh": "#", ".sql": "--", ".ts": "//", ".mjs": "//", ".tf": "#", ".yaml": "#"}


def reasoned(*comments: str) -> bool:
    """Return whether words are left in one of the comments beside its switches."""
    return any(re.search(r"[^\W\d_]{2,}", SWITCH.sub("", one)) for one in comments)


def comments_of(source: str) -> dict[int, str]:
    """Return the comment of each line that has one."""
    return {
        token.start[0]: token.string
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }


def alone_above(lines: list[str], line: int, mark: str) -> str:
    """Return the comment that fills the line above, if one does."""
    above = lines[line - 2].lstrip() if line > 1 else ""
    return above if above.startswith(mark) else ""


def is_broad(caught: ast.expr | None) -> bool:
    """Return whether `except` with this type takes every exception."""
    if isinstance(caught, ast.Tuple):
        return any(is_broad(one) for one in caught.elts)
    return caught is None or (isinstance(caught, ast.Name) and caught.id in BROAD)


def silent_nodes(tree: ast.Module) -> Iterator[tuple[int, range]]:
    """Yield each broad handler and skip that gives no text: its line, and where words may stand."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and is_broad(node.type):
            yield node.lineno, range(node.lineno - 1, node.body[0].lineno + 1)
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            given = [*node.args, *(one.value for one in node.keywords)]
            if name.endswith("suppress") and any(map(is_broad, given)):
                yield node.lineno, range(node.lineno - 1, node.lineno + 1)
            said = any(isinstance(one, ast.Constant | ast.JoinedStr) for one in given)
            if is_skip(name) and not said:
                yield node.lineno, range(0)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for one in node.decorator_list:
                if is_skip(ast.unparse(one)):
                    yield one.lineno, range(0)


def is_skip(name: str) -> bool:
    """Return whether the function or mark of this name leaves a test out."""
    return name.startswith("pytest.") and name.rpartition(".")[2] in SKIPS


def silent_in_python(source: str) -> list[int]:
    """Return the lines of a module that switch a check off and do not say why."""
    if not SUSPECT.search(source):
        return []
    said, lines = comments_of(source), source.splitlines()
    found = {
        line
        for line, beside in silent_nodes(ast.parse(source))
        if not reasoned(*(said.get(one, "") for one in beside))
    }
    for line, comment in said.items():
        if SWITCH.search(comment) and not reasoned(comment, alone_above(lines, line, "#")):
            found.add(line)
    return sorted(found)


def silent_elsewhere(source: str, mark: str) -> list[int]:
    """Return the same of a file whose comments begin so."""
    lines = source.splitlines()
    return [
        line
        for line, text in enumerate(lines, start=1)
        if SWITCH.search(text)
        and not reasoned(text.partition(mark)[2], alone_above(lines, line, mark))
    ]


def files() -> Iterator[Path]:
    """Yield the project's files of languages that have suppressions, apart from this one."""
    for top in TOPS:
        for path in (ROOT / top).rglob("*"):
            is_ours = not MADE & set(path.parts) and path != Path(__file__)
            if is_ours and path.suffix in {".py", *OTHERS}:
                yield path


def test_the_reason_of_each_suppression_is_beside_it():
    """Linters', types', broad handlers', and those of tests that are left out, in each language."""
    silent: list[str] = []
    for path in files():
        text = path.read_text()
        found = (
            silent_in_python(text)
            if path.suffix == ".py"
            else silent_elsewhere(text, OTHERS[path.suffix])
        )
        silent += [f"{path.relative_to(ROOT)}:{line}" for line in found]
    assert silent == []


def test_types_are_silenced_by_pyright_alone():
    """It is the one that checks them, and tells of a comment that it no longer needs."""
    told = re.compile(r"#.*\btype: *ignore")
    found = [
        str(path.relative_to(ROOT))
        for path in files()
        if path.suffix == ".py" and told.search(path.read_text())
    ]
    assert found == []


def test_rules_that_are_off_say_why():
    """Each in pyproject.toml has a comment in its line; one that is as another names it."""
    text = (ROOT / "pyproject.toml").read_text()
    lint = tomllib.loads(text)["tool"]["ruff"]["lint"]
    rules = set(lint["ignore"]).union(*lint["per-file-ignores"].values())
    section = text[text.index("[tool.ruff.lint]") : text.index("[tool.ruff.lint.flake8")]
    lines = [one for one in section.splitlines() if re.search(r'"[A-Z]+\d*"[],]', one)]
    assert {rule for one in lines for rule in re.findall(r'"([A-Z]+\d*)"', one)} - {"ALL"} == rules
    assert [one for one in lines if not reasoned(one.partition("#")[2]) and "ALL" not in one] == []


SILENT = (
    "x = 1  # noqa",
    "x = 1  # noqa: E501",
    "x = 1  # noqa: E501, C901",
    "# ruff: noqa: E501",
    "x = 1  # pyright: ignore[reportFoo]",
    "y = 2  # why\nx = 1  # noqa: E501",
    "try:\n    f()\nexcept Exception:\n    raise",
    "try:\n    f()\nexcept (OSError, BaseException):  # noqa: BLE001\n    pass",
    "try:\n    f()\nexcept:\n    g()\n    h()  # why",
    "with suppress(Exception):\n    f()",
    "pytest.skip()",
    "@pytest.mark.xfail\ndef test_it(): ...",
    "@pytest.mark.skipif(x)\ndef test_it(): ...",
)
REASONED = (
    "x = 1  # noqa: E501 - a reason",
    "# A reason.\nx = 1  # noqa: E501",
    "x = 1  # pyright: ignore[reportFoo] - a reason",
    "try:\n    f()\nexcept Exception:  # a reason\n    raise",
    "try:\n    f()\nexcept Exception:\n    # A reason.\n    g()",
    "try:\n    f()\nexcept OSError:\n    pass",
    "# A reason.\nwith suppress(Exception):\n    f()",
    "pytest.skip('a reason')",
    "@pytest.mark.skipif(x, reason='a reason')\ndef test_it(): ...",
    "text = 'noqa'",
)


def test_a_suppression_without_a_reason_is_found():
    """The check sees each form; words behind another statement are no reason."""
    assert [one for one in SILENT if not silent_in_python(one)] == []
    assert [one for one in REASONED if silent_in_python(one)] == []
    assert silent_elsewhere("a b\n# shellcheck disable=SC2086\nc", "#") == [2]
    assert silent_elsewhere("# Why.\n# shellcheck disable=SC2086\nc", "#") == []
    assert silent_elsewhere("// @ts-expect-error\nf(1);", "//") == [1]
    assert silent_elsewhere("// @ts-expect-error it is no number\nf(1);", "//") == []
