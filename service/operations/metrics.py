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
        self._registry = CollectorRegistry()
        self._shared = shared
        self._requests = Counter(
            "claim_ledger_requests",
            "Requests answered, by route, method, status and error code.",
            ["route", "method", "status", "code"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "claim_ledger_request_seconds",
            "Duration of requests.",
            ["route", "method"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self._children = cache(self._labelled)  # bounded by the routes and the table of codes
        self._storage = Counter(
            "claim_ledger_storage_failures",
            "Requests that failed because of object storage.",
            registry=self._registry,
        )
        self._entries_dropped = Counter(
            "claim_ledger_request_notes_dropped",
            "Calls that could not be recorded for the developer console.",
            registry=self._registry,
        )
        self._degraded = gauge(
            self._registry,
            "rate_limit_degraded",
            "1 while Redis is unavailable and limits are per process.",
        )
        self.gauges = ScrapedGauges(self._registry)

    def request(self, route: str, method: str, status: int, code: str, seconds: float) -> None:
        """Count one request."""
        method = method if method in {"GET", "POST", "HEAD", "OPTIONS"} else "other"
        requests, durations = self._children(route, method, status, code)
        requests.inc()
        durations.observe(seconds)

    def request_log_dropped(self, count: int) -> None:
        """Count calls that the developer console will not show."""
        self._entries_dropped.inc(count)

    def storage_unavailable(self) -> None:
        """Count a request that storage failed."""
        self._storage.inc()

    def rate_limit_degraded(self, degraded: bool) -> None:
        """Record whether Redis is unavailable."""
        self._degraded.set(int(degraded))

    def exposition(self) -> bytes:
        """Return the text that Prometheus reads."""
        if not self._shared:
            return generate_latest(self._registry)
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
