"""PostgreSQL's plans, as `explain (format json)` gives them."""

from collections.abc import Iterator
from typing import Any


def nodes_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a node and each below it, subplans included."""
    yield plan
    for below in plan.get("Plans", []):
        yield from nodes_of(below)
