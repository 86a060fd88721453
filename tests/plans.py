"""PostgreSQL's plans, as `explain (format json)` gives them."""

from collections.abc import Iterator
from typing import Any


def nodes_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a node and each below it, subplans included."""
    yield plan
    for below in plan.get("Plans", []):
        yield from nodes_of(below)


def rows_read(node: dict[str, Any]) -> float:
    """Return the number of rows that a node read, in all its loops."""
    removed = (node.get(f"Rows Removed by {why}", 0) for why in ("Filter", "Index Recheck"))
    return (node["Actual Rows"] + sum(removed)) * node["Actual Loops"]
