"""The operations listener: metrics and health in detail, cheap however often somebody asks."""

import asyncio
import os
import subprocess
import sys

import httpx
import pytest
import structlog
from prometheus_client import CollectorRegistry, Counter, generate_latest

from service.operations.gauges import Collector
from service.operations.listener import OperationsApp
from service.operations.metrics import Metrics, SharedMetrics
from service.operations.scrapes import FRESH_SECONDS_MAX, Scrapes, fresh_seconds

ASKED_AT_ONCE = 100


class Database:
    """Stands for what collectors read: it is up until `up` says otherwise."""

    def __init__(self) -> None:
        self.up = 1
        self.reads = 0

    async def collect(self, gauges) -> None:
        """Set the gauges of a scrape."""
        self.reads += 1
        await asyncio.sleep(0)
        gauges.set("database_up", self.up, "live")
        if not self.up:
            raise ConnectionError
        gauges.set("log_size", 7, "live")
        gauges.set("ledger_forked", 0, "live")
        gauges.set("hand_overs", 2)


FIGURES = [("database_up", "live"), ("log_size", "live"), ("ledger_forked", "live")]


@pytest.fixture
def database():
    """Return what is read."""
    return Database()


@pytest.fixture
def scrapes(database):
    """Return the scrapes, with one counter of the API's."""
    registry = CollectorRegistry()
    Counter("claim_ledger_counted", "Counted.", registry=registry).inc(3)
    return Scrapes([Collector("live.ledger", FIGURES, database.collect)], [registry])


def listening(scrapes: Scrapes, host: str = "127.0.0.1") -> httpx.AsyncClient:
    """Return a client of a listener on an address."""
    app = httpx.ASGITransport(OperationsApp(scrapes, host))
    return httpx.AsyncClient(transport=app, base_url="http://127.0.0.1:9464")


async def test_metrics_and_health(scrapes, database):
    """The same figures for Prometheus and for people; 503 where something is wrong."""
    async with listening(scrapes) as client:
        metrics, health = await client.get("/metrics"), await client.get("/health")
        assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert "claim_ledger_counted_total 3.0" in metrics.text
        assert 'claim_ledger_log_size{ledger="live"} 7.0' in metrics.text
        assert (health.status_code, health.json()["status"]) == (200, "ok")
        assert health.json()["figures"]["log_size"] == {"live": 7}
        assert health.json()["figures"]["hand_overs"] == {"": 2}
    database.up = 0
    failing = (await scrapes.make()).health
    assert (failing["status"], failing["faults"]) == ("failing", ["database_up live"])
    # That is no finding about the log.
    unread = ["collector_up live.ledger", "hand_overs", "ledger_forked live", "log_size live"]
    assert sorted(failing["unread"]) == unread
    assert failing["figures"]["log_size"] == {"live": None}


async def test_what_was_never_read_is_unknown_and_a_fault_is_logged_once():
    """A collector that fails from the first scrape on leaves no figure out, nor hides others."""
    faults = [KeyError("a"), KeyError("b"), ConnectionError(), None, KeyError("c")]

    async def collect(_gauges) -> None:
        if (fault := faults.pop(0)) is not None:
            raise fault

    async def other(gauges) -> None:
        gauges.set("hand_overs", 0)

    one, two = Collector("one", FIGURES[2:], collect), Collector("two", [("hand_overs",)], other)
    scrapes, seen = Scrapes([one, two], []), []
    for _ in range(5):
        with structlog.testing.capture_logs() as logs:
            scrape = await scrapes.make()
        up = scrape.health["figures"]["collector_up"]["one"]
        assert set(scrape.health["unread"]) == {
            "ledger_forked live",
            *["collector_up one"] * (not up),
        }
        assert not scrape.is_healthy
        assert b'claim_ledger_ledger_forked{ledger="live"} NaN' in scrape.exposition
        assert b'claim_ledger_collector_up{collector="two"} 1.0' in scrape.exposition
        seen.append([(line["log_level"], line["collector"]) for line in logs])
    assert seen == [[("error", "one")], [], [("warning", "one")], [], [("error", "one")]]


async def test_other_requests_are_refused(scrapes):
    """Aliases, other methods, and pages that a browser on this machine shows."""
    cases = [
        *(("GET", path, 404) for path in ("//metrics", "/%6detrics", "/metrics/", "/", "/docs")),
        *((method, "/metrics", 405) for method in ("POST", "OPTIONS", "DELETE")),
        *(("HEAD", path, 200) for path in ("/metrics", "/health", "/health/live")),
    ]
    async with listening(scrapes) as client:
        for method, path, status in cases:
            answer = await client.request(method, f"http://127.0.0.1:9464{path}")
            assert answer.status_code == status, (method, path)
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"
            assert method != "HEAD" or answer.content == b""
        foreign = {"Host": "evil.example:9464"}
        assert (await client.get("/metrics", headers=foreign)).status_code == 421
    async with listening(scrapes, "0.0.0.0") as client:  # behind a network that operators chose
        assert (await client.get("/metrics", headers=foreign)).status_code == 200


async def test_many_who_ask_cost_one_scrape(scrapes, database):
    """The database is read once for all of them."""
    async with listening(scrapes) as client:
        answers = await asyncio.gather(*(client.get("/metrics") for _ in range(ASKED_AT_ONCE)))
    assert {answer.status_code for answer in answers} == {200}
    assert database.reads == 1


def test_a_costly_scrape_is_kept_longer():
    """Whatever a scrape costs, a tenth of a processor is spent on scrapes, unless they grow old."""
    assert [fresh_seconds(took) for took in (0.0, 0.01, 0.5, 1.0)] == [1.0, 1.0, 4.5, 9.0]
    assert fresh_seconds(60.0) == FRESH_SECONDS_MAX


@pytest.mark.server
def test_processes_that_have_ended_leave_counters_and_no_gauges(tmp_path):
    """What they answered is counted for good; what they have open is not."""
    count = (
        "from service.operations.metrics import Metrics; metrics = Metrics();"
        "metrics.connections_closed.inc(2); metrics.rate_limit_degraded.set(1)"
    )
    environment = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", count], env=environment, check=True)
    text = generate_latest(SharedMetrics(tmp_path)).decode()
    assert "claim_ledger_connections_closed_total 4.0" in text
    assert "claim_ledger_rate_limit_degraded" not in text
    assert sorted(file.name.partition("_")[0] for file in tmp_path.iterdir()) == ["counter"] * 2


def test_a_process_alone_needs_no_files():
    """As in development: its registry has everything that it counts."""
    text = generate_latest(Metrics().registry).decode()
    assert "claim_ledger_requests" in text
