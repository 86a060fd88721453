"""What the processes that answer requests count.

A scrape never asks them. Where several processes serve, prometheus-client keeps their metrics in
files, which the process of the operations listener reads (`SharedMetrics`).
"""

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, values
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector as Source

from service.ledger.database import Database

SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.3, 0.5, 1.0, 2.0, 5.0)
"""Of histograms' buckets; 0.3 is the objective (docs/slo.md)."""

FILE_BYTES: Final = {
    "counter": 512 << 10,
    "histogram": 1024 << 10,
    "gauge_livemax": 64 << 10,
    "gauge_livesum": 64 << 10,
}
"""What is reserved for each kind of metric: every route with five codes takes half of it."""

_HEAD_BYTES: Final = 8
"""Of each file: they begin with how many bytes are used."""
_UNREAD: Final = ".new"
"""What ends the name of a file that is being made: a scrape reads those that end with `.db`."""

log = structlog.get_logger()


def reserve(directory: str) -> None:
    """Reserve room in a directory for the metrics of this process, before any of them is made.

    Where there is none, they are counted in memory of its own, which nobody reads.
    """
    files = {Path(directory, f"{kind}_{os.getpid()}.db"): most for kind, most in FILE_BYTES.items()}
    _give_back(Path(directory))
    try:
        for path, most in files.items():
            # Under another name first: whoever reads one that is still empty fails.
            made = path if path.exists() else path.with_suffix(_UNREAD)
            # Not to append: where a file system reserves nothing, the C library writes it instead.
            made.touch()
            with made.open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, most)
            made.rename(path)
    except OSError as error:
        for path in files:
            path.unlink(missing_ok=True)
            path.with_suffix(_UNREAD).unlink(missing_ok=True)
        values.ValueClass = values.MutexValue
        log.warning("no room for metrics: a process shows none", error_type=type(error).__name__)


def _give_back(directory: Path) -> None:
    """Give back what processes that have ended reserved and did not use."""
    for path in directory.glob("*_*.*"):
        if _is_alive(int(path.stem.rpartition("_")[2])):
            continue
        with suppress(OSError):
            if path.suffix == _UNREAD:
                path.unlink()
                continue
            with path.open("r+b") as file:
                used = int.from_bytes(file.read(4), sys.byteorder)
                file.truncate(max(used, _HEAD_BYTES))


class Metrics:
    """The metrics of a process that answers requests, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
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
        self.connections_closed = Counter(
            "claim_ledger_connections_closed",
            "Connections that were closed because they were silent, or too many of one network.",
            registry=registry,
        )
        self.rate_limit_degraded = Gauge(
            "claim_ledger_rate_limit_degraded",
            "1 while Redis is unavailable and limits are per process.",
            registry=registry,
            multiprocess_mode="livemax",
        )
        self._pools = Gauge(
            "claim_ledger_pool_connections",
            "Database connections of the processes that answer requests.",
            ["ledger", "pool", "state"],
            registry=registry,
            multiprocess_mode="livesum",
        )

    def request(self, route: str, method: str, status: int, code: str, seconds: float) -> None:
        """Count one request."""
        requests, durations = self._children(route, method_shown(method), status, code)
        requests.inc()
        durations.observe(seconds)

    def pools(self, databases: Mapping[str, Database]) -> None:
        """Set the gauges of the connections that each ledger's pools have open."""
        for ledger, database in databases.items():
            for name, pool in database.pools.items():
                size, idle = pool.connections
                self._pools.labels(ledger, name, "open").set(size)
                self._pools.labels(ledger, name, "idle").set(idle)

    def _labelled(
        self, route: str, method: str, status: int, code: str
    ) -> tuple[Counter, Histogram]:
        """Return the counters of one kind of response, cached: a look-up of labels is slow."""
        return (
            self._requests.labels(route, method, str(status), code),
            self._seconds.labels(route, method),
        )


def method_shown(method: str) -> str:
    """Return a request's method as it is shown: one that we do not serve is any text."""
    return method if method in {"GET", "POST", "HEAD", "OPTIONS"} else "other"


class SharedMetrics(Source):
    """The sum of the metrics that several processes keep as files of a directory."""

    def __init__(self, directory: Path) -> None:
        """`directory` is what PROMETHEUS_MULTIPROC_DIR is to those processes."""
        self._directory = directory
        self._files = MultiProcessCollector(None, str(directory))

    def collect(self) -> Iterable[Metric]:
        """Return the sums; counters of processes that have ended stay, gauges go."""
        for file in self._directory.glob("gauge_live*_*.db"):
            pid = file.stem.rpartition("_")[2]
            if not _is_alive(int(pid)):
                mark_process_dead(int(pid), str(self._directory))
        return self._files.collect()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True
