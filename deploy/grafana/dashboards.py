"""The dashboards of Grafana, as code: `just docs` writes them beside this file.

They are for Grafana 9 or later and ask for a Prometheus that scrapes as `deploy/prometheus.yml` has
it. tests/test_monitoring.py compares the files, and holds every query to the product's metrics;
`just test-monitoring` runs each query on a Prometheus that scrapes a running service.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

HERE: Final = Path(__file__).parent
WIDTH: Final = 24
COLUMNS: Final = 3
HEIGHT: Final = 8

WRITES: Final = 'method="POST", route=~"/v1/.+"'
READS: Final = 'method="GET", route=~"/v1/.+"'


class Panel(NamedTuple):
    """One picture: queries by what their lines are called, and what it is good for."""

    title: str
    unit: str
    queries: Mapping[str, str]
    description: str = ""
    kind: str = "timeseries"


def _latency(of: str) -> Mapping[str, str]:
    buckets = f"sum by (le) (rate(claim_ledger_request_seconds_bucket{{{of}}}[$__rate_interval]))"
    return {
        f"p{share}": f"histogram_quantile(0.{share}, {buckets})" for share in ("50", "95", "99")
    }


def _burn(recorded: str, budget: str) -> Mapping[str, str]:
    return {
        window: f"(max(claim_ledger:{recorded}:ratio_rate{window}) or vector(0)) / {budget}"
        for window in ("5m", "1h", "6h", "3d")
    }


def _worst(name: str, *labels: str, how: str = "max") -> Mapping[str, str]:
    """Return a gauge of the database: every machine shows it, each as it sees it."""
    line = " ".join(f"{{{{{label}}}}}" for label in labels) or name.replace("_", " ")
    by = f" by ({', '.join(labels)})" if labels else ""
    return {line: f"{how}{by} (claim_ledger_{name})"}


def _counted(name: str) -> Mapping[str, str]:
    words = name.removesuffix("_total").replace("_", " ")
    return {words: f"sum(rate(claim_ledger_{name}[$__rate_interval]))"}


SERVICE: Final[Mapping[str, Sequence[Panel]]] = {
    "Objectives (docs/slo.md)": [
        Panel(
            "Writes that succeeded, 3 days",
            "percentunit",
            {"": "1 - (max(claim_ledger:writes_failed:ratio_rate3d) or vector(0))"},
            "The objective is 99.95 %.",
            "stat",
        ),
        Panel(
            "Failed writes, as a multiple of the budget",
            "none",
            _burn("writes_failed", "0.0005"),
            "At 1 the budget of 30 days lasts 30 days. Pages at 14.4 (1 h) and 6 (6 h).",
        ),
        Panel(
            "Slow writes, as a multiple of the budget",
            "none",
            _burn("writes_slow", "0.01"),
            "Longer than 300 ms.",
        ),
        Panel(
            "Writes that failed within the last hour",
            "short",
            {"": "max(claim_ledger:writes_failed:increase1h) or vector(0)"},
            "Five of them, or a page for failures is not sent.",
            "stat",
        ),
        Panel(
            "The API answers",
            "bool_yes_no",
            {"{{instance}}": "claim_ledger_api_up"},
            "Asked by the process beside it.",
        ),
        Panel(
            "The operations listener answers",
            "bool_yes_no",
            {"{{instance}}": 'up{job=~"(.+/)?claim-ledger"}'},
        ),
    ],
    "Traffic": [
        Panel(
            "Requests by route",
            "reqps",
            {"{{route}}": "sum by (route) (rate(claim_ledger_requests_total[$__rate_interval]))"},
            "`refused`: by a process that is busy.",
        ),
        Panel(
            "Refusals by code",
            "reqps",
            {
                "{{status}} {{code}}": (
                    "sum by (status, code)"
                    ' (rate(claim_ledger_requests_total{code!=""}[$__rate_interval]))'
                )
            },
            "`trigger_…`: what partners ask the sandbox for.",
        ),
        Panel(
            "Refused by busy processes",
            "reqps",
            {
                "refused": (
                    'sum(rate(claim_ledger_requests_total{route="refused"}[$__rate_interval]))'
                    " or vector(0)"
                )
            },
        ),
        Panel("Duration of writes", "s", _latency(WRITES), "The objective: p99 of 300 ms."),
        Panel("Duration of reads", "s", _latency(READS)),
        Panel(
            "Requests at once",
            "none",
            {"": "sum(rate(claim_ledger_request_seconds_sum[$__rate_interval]))"},
            "Seconds of requests in a second.",
        ),
    ],
    "What it rests on": [
        Panel(
            "Database connections of the API",
            "short",
            _worst("pool_connections", "ledger", "pool", "state", how="sum"),
        ),
        Panel(
            "The rate limit is per process",
            "bool_yes_no",
            _worst("rate_limit_degraded"),
            "While Redis is away.",
        ),
        Panel(
            "Failures of the document store, connections closed, calls not recorded",
            "cps",
            {
                **_counted("storage_failures_total"),
                **_counted("connections_closed_total"),
                **_counted("request_notes_dropped_total"),
            },
        ),
    ],
}

LEDGER: Final[Mapping[str, Sequence[Panel]]] = {
    "Numbering": [
        Panel(
            "The database can be read", "bool_yes_no", _worst("database_up", "ledger", how="min")
        ),
        Panel("Figures can be read", "bool_yes_no", _worst("collector_up", "collector", how="min")),
        Panel(
            "Events numbered",
            "eps",
            {"{{ledger}}": "max by (ledger) (deriv(claim_ledger_log_size[$__rate_interval]))"},
        ),
        Panel("Numbered events", "short", _worst("log_size", "ledger")),
        Panel("Events without a number", "short", _worst("events_pending", "ledger")),
        Panel("Age of the oldest of them", "s", _worst("oldest_pending_seconds", "ledger")),
        Panel("Numbering stands still", "bool_yes_no", _worst("head_stalled", "ledger")),
        Panel("Oldest open transaction", "s", _worst("oldest_transaction_seconds")),
        Panel(
            "Events that this service did not write",
            "short",
            _worst("events_set_aside", "ledger"),
        ),
        Panel(
            "Events without a MAC get no number",
            "bool_yes_no",
            _worst("events_bound", "ledger", how="min"),
        ),
        Panel("Event keys open", "bool_yes_no", _worst("event_keys_open", how="min")),
        Panel("The service's own keys open", "bool_yes_no", _worst("service_keys_open", how="min")),
    ],
    "What follows the log": [
        Panel("Lag in seconds", "s", _worst("read_model_lag_seconds", "ledger", "name")),
        Panel("Lag in events", "short", _worst("read_model_lag_events", "ledger", "name")),
        Panel("Positions", "short", _worst("read_model_position", "ledger", "name")),
        Panel("Parked streams", "short", _worst("read_model_parked", "ledger", "name")),
        Panel("Ahead of the log", "bool_yes_no", _worst("read_model_ahead", "ledger", "name")),
        Panel(
            "Database connections of the worker",
            "short",
            _worst("worker_pool_connections", "ledger", "pool", "state", how="sum"),
        ),
    ],
    "Mail, hand-overs, documents": [
        Panel("Mails", "short", _worst("mails", "kind", "state")),
        Panel("The oldest mail waits", "s", _worst("oldest_mail_seconds", "kind")),
        Panel("Hand-overs that wait", "short", _worst("hand_overs")),
        Panel("The oldest hand-over waits", "s", _worst("oldest_hand_over_seconds")),
        Panel("The oldest document waits", "s", _worst("oldest_document_check_seconds")),
        Panel("Webhook endpoints", "short", _worst("webhook_endpoints", "ledger", "state")),
        Panel("The oldest webhook is due", "s", _worst("oldest_webhook_seconds", "ledger")),
    ],
    "Evidence": [
        Panel("Age of the last checkpoint", "s", _worst("checkpoint_age_seconds", "ledger")),
        Panel(
            "Events without a checkpoint",
            "short",
            {
                "{{ledger}}": (
                    "max by (ledger) (claim_ledger_log_size - claim_ledger_checkpoint_size)"
                )
            },
        ),
        Panel(
            "Clocks off the database's",
            "s",
            {"{{ledger}}": "max by (ledger) (abs(claim_ledger_clock_offset_seconds))"},
        ),
        Panel("Dated ahead", "s", _worst("checkpoint_ahead_seconds", "ledger")),
        Panel("Witnesses that find a fork", "short", _worst("witness_refusals", "ledger")),
        Panel("Without a quorum of witnesses", "s", _worst("unwitnessed_seconds", "ledger")),
        Panel("Without a time stamp", "s", _worst("unstamped_seconds", "ledger")),
        Panel(
            "Lines not of those they name", "short", _worst("countersignatures_forged", "ledger")
        ),
        Panel("Publications that failed", "short", _worst("publication_failures", "ledger")),
        Panel(
            "The log contradicts what was signed", "bool_yes_no", _worst("ledger_forked", "ledger")
        ),
        Panel("The log was altered", "bool_yes_no", _worst("log_altered", "ledger")),
        Panel("The schema was altered", "bool_yes_no", _worst("schema_altered", "ledger")),
        Panel("Kept nodes that were altered", "short", _worst("tree_nodes_altered", "ledger")),
        Panel("Events of no actor", "short", _worst("log_actor_faults", "ledger")),
        Panel(
            "Events without tiles",
            "short",
            {
                "{{ledger}}": (
                    "max by (ledger) (claim_ledger_checkpoint_size - claim_ledger_tiles_size)"
                )
            },
        ),
        Panel("The tiles do not hold", "bool_yes_no", _worst("tiles_unsound", "ledger")),
        Panel("Verified in slices before", "s", _worst("log_verified_age_seconds", "ledger")),
        Panel(
            "Since the last verification",
            "s",
            {"{{ledger}}": "time() - max by (ledger) (claim_ledger_verified_at_seconds)"},
        ),
        Panel("The verification failed", "bool_yes_no", _worst("verification_failed", "ledger")),
        Panel("Verified events of no actor", "short", _worst("verified_actor_faults", "ledger")),
    ],
}

DASHBOARDS: Final = {
    "service": ("claim-ledger: service", SERVICE),
    "ledger": ("claim-ledger: ledger", LEDGER),
}

_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


def dashboard(name: str) -> dict[str, Any]:
    """Return a dashboard as Grafana takes it."""
    title, rows = DASHBOARDS[name]
    panels: list[dict[str, Any]] = []
    top = 0
    for row, of_row in rows.items():
        place = {"x": 0, "y": top, "w": WIDTH, "h": 1}
        panels.append({"id": len(panels) + 1, "type": "row", "title": row, "gridPos": place})
        top += 1
        for nr, panel in enumerate(of_row):
            place = {
                "x": nr % COLUMNS * WIDTH // COLUMNS,
                "y": top + nr // COLUMNS * HEIGHT,
                "w": WIDTH // COLUMNS,
                "h": HEIGHT,
            }
            panels.append({"id": len(panels) + 1, "gridPos": place, **_shown(panel)})
        top += -(-len(of_row) // COLUMNS) * HEIGHT
    return {
        "uid": f"claim-ledger-{name}",
        "title": title,
        "tags": ["claim-ledger"],
        "schemaVersion": 37,
        "editable": False,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "Prometheus",
                    "type": "datasource",
                    "query": "prometheus",
                }
            ]
        },
        "panels": panels,
    }


def _shown(panel: Panel) -> dict[str, Any]:
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + nr),
                "datasource": _SOURCE,
                "expr": query,
                "legendFormat": line,
            }
            for nr, (line, query) in enumerate(panel.queries.items())
        ],
    }


def documents() -> dict[Path, str]:
    """Return the text of each dashboard's file."""
    return {
        HERE / f"{name}.json": json.dumps(dashboard(name), indent=2) + "\n" for name in DASHBOARDS
    }


if __name__ == "__main__":
    for path, text in documents().items():
        path.write_text(text)
