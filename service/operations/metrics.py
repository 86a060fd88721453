"""What Prometheus scrapes. Each metric is made here and nowhere else."""

from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from service.operations.scraped import UNKNOWN, ScrapedGauges

SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)


class Metrics:
    """The service's metrics, in a registry of their own."""

    def __init__(self, *, shared: bool = False) -> None:
        """`shared`: several processes serve, and a scrape of one has to answer for all."""
        self._registry = CollectorRegistry()
        self._shared = shared
        self._readings = ScrapedGauges()
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
        self._notes_dropped = Counter(
            "claim_ledger_request_notes_dropped",
            "Calls that could not be noted for the developer console.",
            registry=self._registry,
        )
        self._degraded = self._gauge(
            "claim_ledger_rate_limit_degraded", "1 while Redis is away and limits are per process."
        )
        self._pool = self._gauge(
            "claim_ledger_pool_connections", "Database connections of a process.", "ledger", "state"
        )
        self._up = self._gauge(
            "claim_ledger_database_up", "1 where the scrape could read a ledger, else 0.", "ledger"
        )
        self._waiting = self._gauge(
            "claim_ledger_events_pending", "Committed events that have no position yet.", "ledger"
        )
        self._oldest = self._gauge(
            "claim_ledger_oldest_pending_seconds", "Age of the oldest such event.", "ledger"
        )
        self._size = self._gauge("claim_ledger_log_size", "Numbered events of a ledger.", "ledger")
        self._transaction = self._gauge(
            "claim_ledger_oldest_transaction_seconds",
            "Age of the oldest open transaction that the service's log-in may see.",
        )
        self._transaction.set(UNKNOWN)  # it has no labels: else it would be 0 until it is read
        self._mails = self._gauge(
            "claim_ledger_mails", "Mails that wait to be sent, or were given up.", "kind", "state"
        )
        self._oldest_mail = self._gauge(
            "claim_ledger_oldest_mail_seconds", "Age of the oldest mail that waits.", "kind"
        )
        self._read_models = {
            name: self._gauge(f"claim_ledger_read_model_{name}", text, "ledger", "name")
            for name, text in (
                ("position", "Log position that a read model or subscriber has come to."),
                ("lag_events", "Committed events that it has not handled."),
                ("lag_seconds", "Age of the oldest event that it has not handled."),
                ("parked", "Streams that it could not apply and has put aside."),
                ("ahead", "1 while the log lacks the event that it came to."),
            )
        }
        self._stalled = self._gauge(
            "claim_ledger_head_stalled",
            "1 while events wait for a number and the log does not grow.",
            "ledger",
        )
        self._forked = self._gauge(
            "claim_ledger_ledger_forked",
            "1 while the log contradicts what was signed or published of it.",
            "ledger",
        )
        self._checkpoint_size = self._gauge(
            "claim_ledger_checkpoint_size",
            "Events under the last checkpoint; 0 where there is none.",
            "ledger",
        )
        self._checkpoint_age = self._gauge(
            "claim_ledger_checkpoint_age_seconds",
            "Age of the last checkpoint, of the log where there is none; alarming only where the "
            "log has grown since.",
            "ledger",
        )
        self._archive_failures = self._gauge(
            "claim_ledger_publication_failures",
            "Times that a checkpoint could not be made because its archive was away.",
            "ledger",
        )

    def begin_scrape(self) -> int:
        """Begin to read what a scrape asks the database; answer the number for `end_scrape`."""
        return self._readings.begin()

    def end_scrape(self, scrape: int) -> None:
        """Make NaN of what this scrape could not read."""
        self._readings.end(scrape)

    def database_up(self, ledger: str, *, up: bool) -> None:
        """Note whether a ledger could be read."""
        self._up.labels(ledger).set(int(up))

    def request(self, route: str, method: str, status: int, code: str, seconds: float) -> None:
        """Count one answer."""
        method = method if method in {"GET", "POST", "HEAD", "OPTIONS"} else "other"
        requests, durations = self._of(route, method, status, code)
        requests.inc()
        durations.observe(seconds)

    def request_notes_dropped(self, count: int) -> None:
        """Count calls that the developer console will not show."""
        self._notes_dropped.inc(count)

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
        self._readings.set(self._waiting, waiting, ledger)
        self._readings.set(self._oldest, oldest_seconds, ledger)
        self._readings.set(self._size, size, ledger)

    def read_model(
        self,
        ledger: str,
        name: str,
        *,
        position: int,
        lag_events: int,
        lag_seconds: float,
        parked: int,
        ahead: bool,
    ) -> None:
        """Note how a read model or subscriber is doing."""
        of = self._read_models
        self._readings.set(of["position"], position, ledger, name)
        self._readings.set(of["lag_events"], lag_events, ledger, name)
        self._readings.set(of["lag_seconds"], lag_seconds, ledger, name)
        self._readings.set(of["parked"], parked, ledger, name)
        self._readings.set(of["ahead"], int(ahead), ledger, name)

    def head_stalled(self, ledger: str, *, stalled: bool) -> None:
        """Note whether a ledger's log stands still though events wait."""
        self._readings.set(self._stalled, int(stalled), ledger)

    def checkpoints(self, ledger: str, *, forked: bool, archive_failures: int) -> None:
        """Note how a ledger's checkpoints fare."""
        self._readings.set(self._forked, int(forked), ledger)
        self._readings.set(self._archive_failures, archive_failures, ledger)

    def last_checkpoint(self, ledger: str, size: int, age_seconds: float) -> None:
        """Note a ledger's last checkpoint; where there is none, 0 and the age of the log."""
        self._readings.set(self._checkpoint_size, size, ledger)
        self._readings.set(self._checkpoint_age, age_seconds, ledger)

    def oldest_transaction(self, seconds: float) -> None:
        """Note how long the oldest transaction has been open."""
        self._readings.set(self._transaction, seconds)

    def mails(self, kind: str, waiting: int, oldest_seconds: float, failed: int) -> None:
        """Note the mails of a kind, `onboarding` or `sign_in`, that wait and that were given up."""
        self._readings.set(self._mails, waiting, kind, "waiting")
        self._readings.set(self._mails, failed, kind, "failed")
        self._readings.set(self._oldest_mail, oldest_seconds, kind)

    def exposition(self) -> bytes:
        """Return the text that Prometheus reads."""
        if not self._shared:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)
        return generate_latest(registry)

    def _children(
        self, route: str, method: str, status: int, code: str
    ) -> tuple[Counter, Histogram]:
        """Return the counters of one kind of answer; kept: looking them up costs more."""
        return (
            self._requests.labels(route, method, str(status), code),
            self._seconds.labels(route, method),
        )

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self._registry, multiprocess_mode="mostrecent")
