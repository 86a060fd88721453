"""What makes each alert fire, and what comes near and must not, as promtool's series.

`1x90` repeats a value in the next 90 samples, `0+5x90` rises by five with each. Without `x` it goes
on to the end. `HEALTHY` is there in each case, unless the case has a series of the same name.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

DAY = 24 * 6
"""Samples of ten minutes."""


class Case(NamedTuple):
    """Series with which an alert fires after so many samples, and others with which it does not."""

    fires: Sequence[tuple[str, str]]
    quiet: Sequence[tuple[str, str]]
    samples: int = 90
    minutes: int = 1
    """Between two samples: more where it takes days."""


_NEIGHBOUR = 'method="POST", route="/v1/claims", namespace="staging"'
HEALTHY: Sequence[tuple[str, str]] = (
    ('up{job="claim-ledger", instance="one"}', "1"),
    ("claim_ledger_api_up", "1"),
    ('claim_ledger_database_up{ledger="live"}', "1"),
    # Another installation that the same Prometheus scrapes, with so much traffic that what fails in
    # the first would be nothing in the sum of both.
    (f'claim_ledger_requests_total{{{_NEIGHBOUR}, status="201", code=""}}', "0+1000000"),
    (f'claim_ledger_request_seconds_bucket{{{_NEIGHBOUR}, le="0.3"}}', "0+1000000"),
    (f"claim_ledger_request_seconds_count{{{_NEIGHBOUR}}}", "0+1000000"),
)


def _gauge(name: str, bad: str, good: str) -> Case:
    """Return the case of a gauge that is bad, or good, all the time."""
    return Case([(f"claim_ledger_{name}", bad)], [(f"claim_ledger_{name}", good)])


def _requests(labels: str, bad: str, good: str) -> Case:
    """Return the case of requests that are counted so."""
    series = f'claim_ledger_requests_total{{method="GET", {labels}}}'
    return Case([(series, bad)], [(series, good)])


def _writes(status: str, route: str = "/v1/claims", code: str = "") -> str:
    return (
        f'claim_ledger_requests_total{{method="POST", route="{route}", status="{status}", '
        f'code="{code}"}}'
    )


def _slow(of_hundred: float) -> Sequence[tuple[str, str]]:
    labels = 'method="POST", route="/v1/claims"'
    return [
        (f'claim_ledger_request_seconds_bucket{{{labels}, le="0.3"}}', f"0+{100 - of_hundred}"),
        (f"claim_ledger_request_seconds_count{{{labels}}}", "0+100"),
    ]


def _failing(*failed: float, status: str = "503", **labels: str) -> Sequence[tuple[str, str]]:
    """Return 1,000 good writes a minute, and so many that fail."""
    return [(_writes("201"), "0+1000"), *((_writes(status, **labels), f"0+{n}") for n in failed)]


CASES: Mapping[str, Case] = {
    "ClaimLedgerDown": Case([('claim_ledger_database_up{ledger="live"}', "_")], []),
    "ClaimLedgerUnscraped": Case(
        [('up{job="claim-ledger/claim-ledger", instance="two"}', "0")], [('up{job="node"}', "0")]
    ),
    "ClaimLedgerSilent": Case(
        [("claim_ledger_api_up", "0x0" + " 1 0" * 45)],  # one process of two
        [('claim_ledger_api_up{instance="one"}', "1x86 0 1"), ("claim_ledger_api_up", "NaN")],
    ),
    "ClaimLedgerDatabaseDown": _gauge('database_up{ledger="live"}', "0", "1"),
    "ClaimLedgerFiguresUnread": _gauge('collector_up{collector="live.checkpoints"}', "0", "1"),
    "ClaimLedgerUnavailable": _requests(
        'route="/v1/claims", status="503", code="service_unavailable"', "0+10", "0+5"
    ),
    "ClaimLedgerBusy": _requests(
        'route="refused", status="503", code="service_unavailable"', "0+10", "0+5"
    ),
    "ClaimLedgerConnectionsClosed": _gauge("connections_closed_total", "0+90", "0+30"),
    "ClaimLedgerErrors": Case(
        [('claim_ledger_requests_total{status="500", code="internal_error"}', "_x85 1x5")],
        [
            ('claim_ledger_requests_total{status="500", code="internal_error"}', "1"),
            ('claim_ledger_requests_total{status="500", code="trigger_internal_error"}', "0+5"),
        ],
    ),
    "ClaimLedgerStorageFails": _gauge("storage_failures_total", "0+6", "0+2"),
    "ClaimLedgerHeadStalled": _gauge('head_stalled{ledger="live"}', "1", "0"),
    "ClaimLedgerPendingOld": _gauge('oldest_pending_seconds{ledger="live"}', "61", "60"),
    "ClaimLedgerTransactionOpen": _gauge("oldest_transaction_seconds", "301", "300"),
    "ClaimLedgerForked": _gauge('ledger_forked{ledger="live"}', "1", "0"),
    "ClaimLedgerLogAltered": _gauge('log_altered{ledger="live"}', "1", "0"),
    "ClaimLedgerSchemaAltered": _gauge('schema_altered{ledger="live"}', "1", "1x55 0x5 1x25"),
    "ClaimLedgerActorFaults": _gauge('log_actor_faults{ledger="live"}', "1", "0"),
    "ClaimLedgerTreeNodesAltered": _gauge('tree_nodes_altered{ledger="live"}', "1", "0"),
    "ClaimLedgerLogUnverified": _gauge(
        'log_verified_age_seconds{ledger="live"}', "172801", "172800"
    ),
    "ClaimLedgerVerificationFailed": _gauge('verification_failed{ledger="live"}', "1", "0"),
    "ClaimLedgerVerifiedActorFaults": _gauge('verified_actor_faults{ledger="live"}', "1", "0"),
    "ClaimLedgerVerificationOld": Case(
        [('claim_ledger_verified_at_seconds{ledger="live"}', "0")],
        [('claim_ledger_verified_at_seconds{ledger="live"}', "90000")],
        samples=2 * DAY + 1,
        minutes=10,
    ),
    # Thirty days, and less or more than the case lasts.
    "ClaimLedgerCertificateEnding": _gauge(
        'certificate_ends_seconds{certificate="machine.crt"}', "2592000", "2600000"
    ),
    "ClaimLedgerAuthenticationFailures": _requests(
        'route="/v1/claims", status="401", code="auth_bad_secret"', "0+11", "0+9"
    ),
    # It rises while another process takes over, and less than another installation has; it falls by
    # a restore.
    "ClaimLedgerEventsSetAside": Case(
        [
            ('claim_ledger_events_set_aside{ledger="live", instance="one"}', "1x40 _x49"),
            ('claim_ledger_events_set_aside{ledger="live", instance="two"}', "_x40 2x49"),
            ('claim_ledger_events_set_aside{ledger="live", namespace="staging"}', "5"),
        ],
        [
            ('claim_ledger_events_set_aside{ledger="accounts", instance="one"}', "3x40 _x49"),
            ('claim_ledger_events_set_aside{ledger="accounts", instance="two"}', "_x40 3x49"),
            ('claim_ledger_events_set_aside{ledger="live"}', "3x40 2x49"),
        ],
    ),
    "ClaimLedgerEventsUnbound": Case(
        [('claim_ledger_events_bound{ledger="live"}', "0")],
        [('claim_ledger_events_bound{ledger="live"}', "1")],
        samples=DAY + 1,
        minutes=10,
    ),
    "ClaimLedgerEventKeyNotOpened": _gauge("event_keys_open", "0", "1"),
    "ClaimLedgerServiceKeyNotOpened": _gauge("service_keys_open", "0", "1"),
    "ClaimLedgerSubscriberAhead": _gauge('read_model_ahead{ledger="live", name="mail"}', "1", "0"),
    "ClaimLedgerCheckpointOld": Case(
        [
            ('claim_ledger_checkpoint_age_seconds{ledger="live"}', "3601"),
            ('claim_ledger_log_size{ledger="live"}', "10"),
            ('claim_ledger_checkpoint_size{ledger="live"}', "9"),
        ],
        [
            ('claim_ledger_checkpoint_age_seconds{ledger="live"}', "3601"),
            ('claim_ledger_log_size{ledger="live"}', "10"),
            ('claim_ledger_checkpoint_size{ledger="live"}', "10"),
        ],
    ),
    "ClaimLedgerClockOff": _gauge('clock_offset_seconds{ledger="live"}', "-31", "30"),
    "ClaimLedgerCheckpointAhead": _gauge('checkpoint_ahead_seconds{ledger="live"}', "1", "0"),
    "ClaimLedgerWitnessRefuses": _gauge('witness_refusals{ledger="live"}', "1", "0"),
    "ClaimLedgerUnwitnessed": _gauge('unwitnessed_seconds{ledger="live"}', "3601", "3600"),
    "ClaimLedgerUnstamped": _gauge('unstamped_seconds{ledger="live"}', "3601", "3600"),
    "ClaimLedgerCountersignaturesForged": _gauge(
        'countersignatures_forged{ledger="live"}', "1", "0"
    ),
    "ClaimLedgerPublicationFails": Case(
        [
            ('claim_ledger_publication_failures{ledger="live"}', "0+1"),
            ('claim_ledger_publication_failures{ledger="live", namespace="staging"}', "500"),
        ],
        [('claim_ledger_publication_failures{ledger="live"}', "7x65 3x10 2x14")],
    ),
    "ClaimLedgerTilesUnsound": _gauge('tiles_unsound{ledger="live"}', "1", "0"),
    "ClaimLedgerTilesBehind": Case(
        [
            ('claim_ledger_tiles_size{ledger="live"}', "9"),
            ('claim_ledger_checkpoint_size{ledger="live"}', "10"),
        ],
        [
            ('claim_ledger_tiles_size{ledger="live"}', "10"),
            ('claim_ledger_checkpoint_size{ledger="live"}', "10"),
        ],
    ),
    "ClaimLedgerReadModelBehind": _gauge(
        'read_model_lag_seconds{ledger="live", name="mail"}', "301", "300"
    ),
    "ClaimLedgerStreamsParked": _gauge('read_model_parked{ledger="live", name="mail"}', "1", "0"),
    "ClaimLedgerHandOverStuck": _gauge("oldest_hand_over_seconds", "901", "900"),
    "ClaimLedgerWebhooksStuck": _gauge('oldest_webhook_seconds{ledger="live"}', "901", "900"),
    "ClaimLedgerDocumentCheckStuck": _gauge("oldest_document_check_seconds", "3601", "3600"),
    "ClaimLedgerRateLimitDegraded": _gauge("rate_limit_degraded", "1", "0"),
    "ClaimLedgerMailStuck": Case(
        [('claim_ledger_oldest_mail_seconds{kind="sign_in"}', "301")],
        [('claim_ledger_oldest_mail_seconds{kind="onboarding"}', "900")],
    ),
    "ClaimLedgerMailWithheld": _gauge(
        'mails{kind="onboarding", state="withheld"}', "0x60 20x30", "20"
    ),
    "ClaimLedgerMailGivenUp": _gauge('mails{kind="onboarding", state="failed"}', "0x60 1x30", "1"),
    # 0.0005 is the budget: 14.4 times that for an hour; a 503 that was announced counts, too.
    "ClaimLedgerWritesFailFast": Case(
        _failing(8, route="refused", code="service_unavailable"),
        [*_failing(2.5), (_writes("400"), "0+500"), (_writes("500", code="trigger_x"), "0+500")],
        samples=60,
    ),
    "ClaimLedgerWritesFail": Case(_failing(0.6), _failing(0.4), samples=3 * DAY, minutes=10),
    "ClaimLedgerWritesSlowFast": Case(_slow(15), _slow(5), samples=60),
    "ClaimLedgerWritesSlow": Case(_slow(1.2), _slow(0.8), samples=3 * DAY, minutes=10),
}

ALSO: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "ClaimLedgerWritesFailFast": (
        ["ClaimLedgerWritesFail", "ClaimLedgerBusy"],
        ["ClaimLedgerWritesFail"],
    ),
    "ClaimLedgerWritesSlowFast": (["ClaimLedgerWritesSlow"], ["ClaimLedgerWritesSlow"]),
}
"""What else fires with the one series, and with the other."""
