"""What Prometheus scrapes. Each metric is made here and nowhere else."""

from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)


class Metrics:
    """The service's metrics, in a registry of their own."""

    def __init__(self, *, shared: bool = False) -> None:
        """`shared`: several processes serve, and a scrape of one has to answer for all."""
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
            "How long answers took.",
            ["route", "method"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self._of = cache(self._children)  # bounded by the routes and the table of codes
        self._storage = Counter(
            "claim_ledger_storage_failures",
            "Times that object storage failed a request.",
            registry=self._registry,
        )
        self._degraded = self._gauge(
            "claim_ledger_rate_limit_degraded", "1 while Redis is away and limits are per process."
        )
        self._pool = self._gauge(
            "claim_ledger_pool_connections", "Database connections of a process.", "ledger", "state"
        )
        self._waiting = self._gauge(
            "claim_ledger_events_pending", "Committed events that have no position yet.", "ledger"
        )
        self._oldest = self._gauge(
            "claim_ledger_oldest_pending_seconds", "Age of the oldest such event.", "ledger"
        )
        self._size = self._gauge("claim_ledger_log_size", "Numbered events of a ledger.", "ledger")

    def request(self, route: str, method: str, status: int, code: str, seconds: float) -> None:
        """Count one answer."""
        method = method if method in {"GET", "POST", "HEAD", "OPTIONS"} else "other"
        requests, durations = self._of(route, method, status, code)
        requests.inc()
        durations.observe(seconds)

    def storage_unavailable(self) -> None:
        """Count a request that storage failed."""
        self._storage.inc()

    def rate_limit_degraded(self, degraded: bool) -> None:
        """Note whether Redis is away."""
        self._degraded.set(int(degraded))

    def pool(self, ledger: str, size: int, idle: int) -> None:
        """Note a pool's connections."""
        self._pool.labels(ledger, "open").set(size)
        self._pool.labels(ledger, "idle").set(idle)

    def lag(self, ledger: str, waiting: int, oldest_seconds: float, size: int) -> None:
        """Note how far a ledger's numbering is behind."""
        self._waiting.labels(ledger).set(waiting)
        self._oldest.labels(ledger).set(oldest_seconds)
        self._size.labels(ledger).set(size)

    def exposition(self) -> bytes:
        """Answer the text that Prometheus reads."""
        if not self._shared:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)
        return generate_latest(registry)

    def _children(
        self, route: str, method: str, status: int, code: str
    ) -> tuple[Counter, Histogram]:
        """Answer the counters of one kind of answer; kept: looking them up costs more."""
        return (
            self._requests.labels(route, method, str(status), code),
            self._seconds.labels(route, method),
        )

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self._registry, multiprocess_mode="mostrecent")
