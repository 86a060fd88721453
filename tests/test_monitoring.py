"""Rules read only what the product shows, and every alert leads to its page."""

import re

from deploy.grafana.dashboards import DASHBOARDS, documents
from service.core.errors import ERRORS
from service.operations import gauges as gauges_module
from service.operations.metrics import SECONDS
from tests import runbook
from tests.monitoring.alert_cases import ALSO, CASES
from tests.monitoring.rules import (
    ALERTS,
    DEPLOY,
    RULES,
    faults,
    grouped_by,
    left_out,
    product_metrics,
    used,
)

RUNBOOK = "{{ $externalLabels.runbooks }}/deploy/runbook.md#"
CODES = re.compile(r'code=~?"([a-z_|]+)"')
SHOWN_LABELS = re.compile(r"\$labels\.(\w+)")


def test_rules_read_only_what_the_product_shows():
    """A misspelt metric or label would never fire."""
    metrics = product_metrics()
    assert {
        rule.get("alert", rule.get("record")): faults(rule["expr"], metrics) for rule in RULES
    } == {rule.get("alert", rule.get("record")): [] for rule in RULES}
    assert faults('sum by (leger) (claim_ledger_log_size{x="1"})', metrics) == [
        "claim_ledger_log_size{x}",
        "leger",
    ]
    assert faults("rate(claim_ledger_reqests_total[5m])", metrics) == ["claim_ledger_reqests_total"]


def test_only_what_counts_is_taken_for_a_counter():
    """To these functions, a gauge that falls begins anew, and has grown by all that is left."""
    counted = re.compile(r"\b(?:rate|irate|increase|resets)\((\w+)")
    expressions = [*(rule["expr"] for rule in RULES), *QUERIES.values()]
    names = {name for expression in expressions for name in counted.findall(expression)}
    assert len(names) > 1
    ends = ("_total", "_bucket", "_count", "_sum")
    assert {name for name in names if not name.endswith(ends)} == set()


def test_alerts_watch_codes_of_ours():
    """A misspelt code would never fire either."""
    watched = [code for rule in RULES for code in CODES.findall(rule["expr"])]
    assert len(watched) > 1
    assert {code for codes in watched for code in codes.split("|")} <= set(ERRORS)


def test_every_alert_leads_to_its_page():
    """The section exists and names the alert, and no other alert is named."""
    text = runbook.PATH.read_text()
    sections = dict(
        zip(
            re.findall(r"^## (.+)$", text, re.MULTILINE),
            re.split(r"^## .+$", text, flags=re.MULTILINE)[1:],
            strict=True,
        )
    )
    by_anchor = {title.lower().replace(",", "").replace(" ", "-"): title for title in sections}
    assert set(re.findall(r"`(ClaimLedger\w+)`", text)) == set(ALERTS)
    for name, rule in ALERTS.items():
        url = rule["annotations"]["runbook_url"]
        assert url.startswith(RUNBOOK), name
        assert f"`{name}`" in sections[by_anchor[url.removeprefix(RUNBOOK)]], name
        assert rule["labels"]["severity"] in {"page", "ticket"}
    assert "runbooks: https://" in (DEPLOY / "prometheus.yml").read_text()


def test_annotations_show_labels_that_are_there():
    """As far as the alert's expression keeps them."""
    metrics = product_metrics()
    for name, rule in ALERTS.items():
        shown = set(SHOWN_LABELS.findall(rule["annotations"]["summary"]))
        kept = {label for one in metrics if one in rule["expr"] for label in metrics[one]}
        assert shown <= kept - left_out(rule["expr"]), name


def test_no_rule_merges_installations():
    """What is aggregated keeps `job`, `namespace` and an operator's own labels, in every rule."""
    aggregated = re.compile(r"\b(?:sum|max|min|count|avg)\b(?! without \()")
    for rule in RULES:
        assert not aggregated.search(rule["expr"]), rule
        assert not left_out(rule["expr"]) & {"job", "namespace", "ledger"}, rule


QUERIES = {
    (name, panel.title, line): query
    for name, (_, rows) in DASHBOARDS.items()
    for panels in rows.values()
    for panel in panels
    for line, query in panel.queries.items()
}
LINE_LABELS = re.compile(r"\{\{(\w+)\}\}")


def test_dashboards_are_those_of_the_code():
    """`just generate` writes them."""
    for path, text in documents().items():
        assert path.read_text() == text, f"{path} is generated: run `just generate`"


def test_panels_read_only_what_the_product_shows():
    """And their lines are called by labels that the query keeps."""
    metrics = product_metrics()
    found = {place: faults(query, metrics) for place, query in QUERIES.items()}
    assert {place: lacking for place, lacking in found.items() if lacking} == {}
    for (_, title, line), query in QUERIES.items():
        named = set(LINE_LABELS.findall(line))
        assert named == grouped_by(query) - {"le"} or named == {"instance"}, title


def test_every_gauge_is_on_a_panel():
    """Whoever looks finds all that is measured."""
    shown = {name for query in QUERIES.values() for name in used(query)}
    gauges = {f"claim_ledger_{name}" for name in gauges_module._GAUGES}  # noqa: SLF001 - all of them
    assert gauges <= shown
    counted = {name for name in product_metrics() if name.endswith(("_total", "_bucket", "_sum"))}
    assert counted <= shown


def test_every_alert_has_a_case():
    """Promtool fires each (`just test-monitoring`)."""
    assert set(CASES) == set(ALERTS)
    assert set(ALSO) <= set(ALERTS)


def test_the_objective_is_a_bucket():
    """Otherwise its share could only be guessed."""
    assert 0.3 in SECONDS
