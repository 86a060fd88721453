"""The blocks of deploy/terraform, parsed."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import hcl2

TERRAFORM = Path(__file__).parents[2] / "deploy" / "terraform"
LABELS = {"resource": 2, "data": 2, "variable": 1, "output": 1, "provider": 1}
"""How many names stand before a block's body."""


class Block(NamedTuple):
    """A block: its kind, its type (of resources and data), its name and its arguments."""

    kind: str
    type: str
    name: str
    body: dict[str, Any]


@cache
def blocks() -> list[Block]:
    """Return every block of every file."""
    return [one for path in sorted(TERRAFORM.glob("*.tf")) for one in _blocks(path)]


def resource(type_: str, name: str) -> dict[str, Any]:
    """Return the arguments of one resource."""
    (found,) = [one.body for one in blocks() if one[:3] == ("resource", type_, name)]
    return found


def local(name: str) -> Any:
    """Return a local value, as it is written."""
    (found,) = [one.body[name] for one in blocks() if one.kind == "locals" and name in one.body]
    return found


def _blocks(path: Path) -> Iterator[Block]:
    with path.open() as file:
        parsed = _bare(hcl2.load(file))
    for kind, found in parsed.items():
        for body in found:
            names: list[str] = []
            for _ in range(LABELS.get(kind, 0)):
                ((name, body),) = body.items()  # noqa: PLW2901 - the labels lead to the body
                names.append(name)
            type_, name = ("", *names)[-2:] if names else ("", "")
            yield Block(kind, type_, name, body)


def _bare(value: Any) -> Any:
    """Return a value without the parser's own marks: quotes of strings, comments."""
    match value:
        case dict():
            return {
                _bare(key): _bare(one)
                for key, one in value.items()
                if not (isinstance(key, str) and key.startswith("__"))
            }
        case list():
            return [_bare(one) for one in value]
        case str():
            return value[1:-1] if value.startswith('"') and value.endswith('"') else value
        case _:
            return value
