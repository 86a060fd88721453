"""The rules of `deploy/`, and the metrics that the product has, for the tests of both."""

import re
from pathlib import Path
from typing import Any, Final

import yaml
from prometheus_client import CollectorRegistry

from service.operations.gauges import ScrapedGauges
from service.operations.metrics import Metrics

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
RULE_FILES: Final = ("alerts.yml", "slo.yml")
_GROUPS: Final[list[dict[str, Any]]] = [
    group for name in RULE_FILES for group in yaml.safe_load((DEPLOY / name).read_text())["groups"]
]
RULES: Final[list[dict[str, Any]]] = [rule for group in _GROUPS for rule in group["rules"]]
ALERTS: Final = {rule["alert"]: rule for rule in RULES if "alert" in rule}
RECORDED: Final = {rule["record"] for rule in RULES if "record" in rule}

GROUPS_IN_ORDER: Final = [
    group["name"] for group in sorted(_GROUPS, key=lambda group: "record" not in group["rules"][0])
]
"""The groups of rules, those first whose rules record what others read."""

_NAME: Final = re.compile(r"\b(claim_ledger[_:][a-z0-9_:]+|up)\b(?:\{([^}]*)\})?")
_LABEL: Final = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_BY: Final = re.compile(r"\b(?:by|without|on|group_left)\s*\(([^)]*)\)")
_WITHOUT: Final = re.compile(r"\bwithout\s*\(([^)]*)\)")


def product_metrics() -> dict[str, set[str]]:
    """Return the labels of each series that the product shows, by its name."""
    registry = CollectorRegistry()
    ScrapedGauges(registry)
    found: dict[str, set[str]] = {"up": {"job", "instance"}}
    for source in (Metrics().registry, registry):
        for collector in list(source._collector_to_names):  # noqa: SLF001 - labels before any series
            labels = set(collector._labelnames)  # noqa: SLF001 - as above
            for name in source._collector_to_names[collector]:  # noqa: SLF001 - as above
                found[name] = labels | ({"le"} if name.endswith("_bucket") else set())
    for name in ("verification_failed", "verified_actor_faults", "verified_at_seconds"):
        found[f"claim_ledger_{name}"] = {"ledger"}
    found["claim_ledger_certificate_ends_seconds"] = {"certificate"}
    for labels in found.values():
        # Which Prometheus adds, and where its operator finds the pods.
        labels.update({"job", "instance", "namespace", "pod", "container", "endpoint"})
    return found | {name: set[str]() for name in RECORDED}


def used(expression: str) -> dict[str, set[str]]:
    """Return the series that an expression reads, with the labels that it selects by."""
    found: dict[str, set[str]] = {}
    for name, selector in _NAME.findall(expression):
        found.setdefault(name, set()).update(_LABEL.findall(re.sub(r'"[^"]*"', "", selector)))
    return found


def grouped_by(expression: str) -> set[str]:
    """Return the labels that an expression groups by."""
    return _labels(_BY, expression)


def left_out(expression: str) -> set[str]:
    """Return the labels that an expression's aggregations leave out."""
    return _labels(_WITHOUT, expression)


def _labels(groups: re.Pattern[str], expression: str) -> set[str]:
    found = groups.findall(expression)
    return {label.strip() for group in found for label in group.split(",")} - {""}


def faults(expression: str, metrics: dict[str, set[str]]) -> list[str]:
    """Return what an expression reads and the product does not have."""
    series = used(expression)
    if not series:
        return [f"reads nothing: {expression}"]
    lacking = [name for name in series if name not in metrics]
    known = {label for name in series for label in metrics.get(name, ())}
    lacking += [
        f"{name}{{{label}}}"
        for name, labels in series.items()
        for label in labels - metrics.get(name, labels)
    ]
    return lacking + sorted(grouped_by(expression) - known)
