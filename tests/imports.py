"""What a file imports."""

import ast
from pathlib import Path


def imported(script: Path) -> set[str]:
    """Return the packages that a file imports, wherever in it."""
    nodes = list(ast.walk(ast.parse(script.read_text())))
    plain = [one.name for node in nodes if isinstance(node, ast.Import) for one in node.names]
    named = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in (*plain, *named)}
