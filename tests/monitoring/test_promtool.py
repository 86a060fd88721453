"""Prometheus's own tool fires every alert, and keeps it silent where little is missing.

Apart from `just test`, because it needs Debian's package: `just test-monitoring`.
"""

import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.monitoring.alert_cases import ALSO, CASES, HEALTHY, Case
from tests.monitoring.rules import ALERTS, DEPLOY, GROUPS_IN_ORDER, RULE_FILES

pytestmark = [pytest.mark.server, pytest.mark.timeout(1200)]

FIRING = 'count by (alertname) (ALERTS{alertstate="firing"})'


def values(text: str, samples: int) -> str:
    """Return a series' values in full, where only one value or its rise is given."""
    if "x" in text:
        return text
    return f"{text}x{samples}" if "+" in text or text == "_" else f"{text}+0x{samples}"


def promtool_test(
    series: Sequence[tuple[str, str]], case: Case, alerts: Collection[str]
) -> dict[str, Any]:
    """Return a test of promtool's: these series, and exactly these alerts."""
    given = dict(HEALTHY) | dict(series)
    expected = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(alerts)]
    at = f"{case.samples * case.minutes}m"
    return {
        "interval": f"{case.minutes}m",
        "external_labels": {"runbooks": "https://git.example.com"},
        "input_series": [
            {"series": name, "values": values(text, case.samples)} for name, text in given.items()
        ],
        "promql_expr_test": [{"expr": FIRING, "eval_time": at, "exp_samples": expected}],
    }


def promtool(minutes: int, tests: Sequence[dict[str, Any]], directory: Path) -> str:
    """Run tests with an evaluation every so many minutes; return what failed."""
    file = directory / f"alerts.{minutes}.yml"
    given = {
        "rule_files": [str(DEPLOY / name) for name in RULE_FILES],
        "evaluation_interval": f"{minutes}m",
        # Left alone, promtool takes any order, and alerts may read what was recorded a turn before.
        "group_eval_order": GROUPS_IN_ORDER,
        "tests": list(tests),
    }
    file.write_text(yaml.safe_dump(given))
    command = ["promtool", "test", "rules", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_every_alert_fires(tmp_path: Path) -> None:
    """With its series, and those that it implies; with the near ones, and in health, none."""
    tests = {1: [promtool_test([], Case([], []), ())], 10: [promtool_test([], Case([], []), ())]}
    for name, case in CASES.items():
        fires, quiet = ALSO.get(name, ((), ()))
        tests[case.minutes] += [
            promtool_test(case.fires, case, {name, *fires}),
            promtool_test(case.quiet, case, quiet),
        ]
    assert "".join(promtool(minutes, some, tmp_path) for minutes, some in tests.items()) == ""
    assert set(CASES) == set(ALERTS)


def test_the_configuration_is_valid() -> None:
    """With the rule files that it names."""
    done = subprocess.run(
        ["promtool", "check", "config", str(DEPLOY / "prometheus.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
