"""The metrics that Prometheus scrapes: counted here, or set by collectors at each scrape."""

from functools import cache

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from service.operations.gauges import ScrapedGauges, gauge

SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)


class Metrics:
    """The service's metrics, in a registry of their own."""

    def __init__(self, *, shared: bool = False) -> None:
        """`shared`: several processes serve, and a scrape of one has to report for all."""
        self._registry = registry = CollectorRegistry()
        self._shared = shared
        self._requests = Counter(
            "claim_ledger_requests",
            "Requests answered, by route, method, status and error code.",
            ["route", "method", "status", "code"],
            registry=registry,
        )
        self._seconds = Histogram(
            "claim_ledger_request_seconds",
            "Duration of requests.",
            ["route", "method"],
            buckets=SECONDS,
            registry=registry,
        )
        self._children = cache(self._labelled)  # bounded by the routes and the table of codes
        self.storage_failures = Counter(
            "claim_ledger_storage_failures",
            "Requests that failed because of object storage.",
            registry=registry,
        )
        self.request_log_dropped = Counter(
            "claim_ledger_request_notes_dropped",
            "Calls that could not be recorded for the developer console.",
            registry=registry,
        )
        self.rate_limit_degraded = gauge(
            registry,
            "rate_limit_degraded",
            "1 while Redis is unavailable and limits are per process.",
        )
        self.gauges = ScrapedGauges(registry)

    def request(self, route: str, method: str, status: int, code: str, seconds: float) -> None:
        """Count one request."""
        method = method if method in {"GET", "POST", "HEAD", "OPTIONS"} else "other"
        requests, durations = self._children(route, method, status, code)
        requests.inc()
        durations.observe(seconds)

    def exposition(self) -> bytes:
        """Return the text that Prometheus reads."""
        registry = self._registry
        if self._shared:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)
        return generate_latest(registry)

    def _labelled(
        self, route: str, method: str, status: int, code: str
    ) -> tuple[Counter, Histogram]:
        """Return the counters of one kind of response, cached: a look-up of labels is slow."""
        return (
            self._requests.labels(route, method, str(status), code),
            self._seconds.labels(route, method),
        )
