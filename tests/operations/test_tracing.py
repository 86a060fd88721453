"""Traces: what they show, what they never hold, and what they cost whoever is traced."""

import asyncio
import json
import logging
import re
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import structlog

from service.app.background import background
from service.app.bootstrap import Service
from service.app.serve import STOP_SECONDS_MAX
from service.app.tracing import traced_steps, traces_for
from service.core.tracing import PARTS_MAX, SpanRecord, span, within
from service.ledger.batching import Batcher
from service.ledger.database import Pool
from service.mail.transport import mail_transport
from service.operations.request_middleware import RequestMiddleware
from service.operations.tracing import otlp
from service.operations.tracing.traces import Traces
from tests.log_lines import logged
from tests.memory_ledger import memory_service, memory_world
from tests.otlp_receiver import attributes, ended, export_of, queue_of, receiver
from tests.patience import PATIENCE_SECONDS
from tests.processes import free_port
from tests.world import World, settings_for, world_on

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[2]
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
NOWHERE = "postgresql://nobody@127.0.0.1:1/none"
CANARY = "canary"
CLOSE_SECONDS_MAX = otlp.CLOSE_SECONDS_MAX


@pytest.fixture
def collector(monkeypatch):
    """Return a collector on the loopback, which is sent all there is, however long it takes."""
    monkeypatch.setattr(otlp, "CLOSE_SECONDS_MAX", PATIENCE_SECONDS)
    with receiver() as received:
        yield received


@asynccontextmanager
async def traced_world(tmp_path, url, **given):
    """Return a world in memory whose requests are traced; nothing of its export runs on after."""
    settings = settings_for(NOWHERE, tmp_path, **{"OTLP_URL": url, "TRACED_PERCENT": "100"} | given)
    world = World(memory_service(settings), tmp_path)
    try:
        yield world
    finally:
        # What it logs at its end would be in the next test's lines.
        await asyncio.to_thread(ended, traces_of(world))


def traces_of(world: World) -> Traces:
    """Return the traces of a world's application."""
    return world.admitted.app.traces


async def test_off_costs_nothing(tmp_path):
    """Without a collector every part is the plain one, and nothing of the library is loaded."""
    world = memory_world(tmp_path)
    assert type(world.admitted.app) is RequestMiddleware
    assert {type(mode.claims._batcher) for mode in world.service.modes.values()} == {Batcher}  # noqa: SLF001 - which one it is
    partner = await world.partner()
    answer = await partner.call("GET", "/claims", headers={"traceparent": PARENT})
    assert "traceparent" not in answer.headers


def test_off_loads_nothing():
    """What is loaded without traces imports neither the library nor what needs it."""
    loaded = re.compile(
        r"^(?:from|import) (?:opentelemetry|service\.operations\.tracing)", re.MULTILINE
    )
    paths = [path for path in (ROOT / "service").rglob("*.py") if path.parent.name != "tracing"]
    assert [path for path in paths if loaded.search(path.read_text())] == []


async def test_a_claim_and_what_follows_from_it(database_url, tmp_path, collector):
    """Request, authentication, write, commit: of each request, though they share a batch."""
    settings = settings_for(database_url, tmp_path, OTLP_URL=collector.url, TRACED_PERCENT="100")
    async with world_on(settings, tmp_path, follow=False) as world:
        partner, entity_id = await world.connected()
        async with asyncio.TaskGroup() as group:
            for number in range(3):
                headers = {"traceparent": f"00-{number + 1:032x}-b7ad6b7169203331-01"}
                group.create_task(traced_claim(partner, entity_id, number, headers))
        traces_of(world).close()
        spans = collector.spans
        for number in range(3):
            of_one = [one for one in spans if one.trace_id.hex() == f"{number + 1:032x}"]
            by_name = {one.name: one for one in of_one}
            root = by_name["POST /v1/claims"]
            assert root.parent_span_id.hex() == "b7ad6b7169203331"
            assert by_name["authenticate"].parent_span_id == root.span_id
            assert by_name["write"].parent_span_id == root.span_id
            commit = by_name["commit"]
            assert commit.parent_span_id == by_name["write"].span_id
            assert root.start_time_unix_nano <= commit.start_time_unix_nano
            assert commit.end_time_unix_nano <= root.end_time_unix_nano
            assert attributes(commit)["db.namespace"] == "live"
            assert attributes(root)["http.response.status_code"] == 201
            read = by_name["projections.partners last_events"]
            assert read.parent_span_id == by_name["authenticate"].span_id
        worker = traces_for(settings, "worker")
        assert worker is not None
        followers = background(
            world.service, mail_transport(settings.smtp_url), around=traced_steps(worker)
        )
        followers.start()
        spans = await asyncio.to_thread(
            collector.wait_for, "live.sequencer", "live.activity", "transaction"
        )
        await followers.stop()
        worker.close()
    steps = {one.name: attributes(one) for one in spans if not one.parent_span_id}
    assert steps["live.sequencer"]["claim_ledger.handled"] > 0
    assert "live.outbox" not in steps  # there was no mail: what did nothing is no trace


async def traced_claim(partner, entity_id, number, headers):
    """Create a claim within a trace of the caller's; it is answered with its part of it."""
    body = {
        "entity_id": entity_id,
        "partner_claim_id": f"case-{number}",
        "defendant": {"name": "Debtor"},
        "invoices": [{"number": "INV-1", "total_amount_for_invoice": "10.00"}],
    }
    answer = await partner.call("POST", "/claims", json=body, headers=headers)
    assert answer.status_code == 201
    version, trace_id, span_id, flags = answer.headers["traceparent"].split("-")
    assert (version, trace_id, flags) == ("00", headers["traceparent"][3:35], "01")
    assert span_id != "b7ad6b7169203331"


async def test_whose_trace_a_request_belongs_to(tmp_path, collector):
    """The caller's, where one header is well-formed; who calls does not say what is kept."""
    async with traced_world(tmp_path, collector.url, TRACED_PERCENT="0") as world:
        cases = {
            PARENT: True,
            PARENT.replace("00-", "cc-") + "-what-comes-later": True,
            PARENT[:-2]: False,
            PARENT.replace("00-", "ff-"): False,
            f"00-{'0' * 32}-b7ad6b7169203331-01": False,
            f"00-{TRACE}-{'0' * 16}-01": False,
            PARENT.upper(): False,
            "\u00e9" * 55: False,
            "0" * 5000: False,
        }
        for given, continues in cases.items():
            headers = [(b"traceparent", given.encode("latin-1"))]
            answer = await world.client.get("/health/live", headers=headers)
            returned = answer.headers.get("traceparent", "")
            assert returned.startswith(f"00-{TRACE}-") == bool(returned) == continues, given
            assert returned[-3:] in {"", "-00"}
        twice = [(b"traceparent", PARENT.encode())] * 2
        answer = await world.client.get("/health/live", headers=twice)
        assert "traceparent" not in answer.headers
    assert collector.spans == []


async def test_a_trace_holds_nothing_personal(tmp_path, collector):
    """Neither of bodies, paths, queries or headers, nor of an error's message or a key."""
    async with traced_world(tmp_path, collector.url) as world:
        partner, entity_id = await world.connected()
        secret = partner.keys["live"].rpartition("_")[2]
        await partner.claim(entity_id, f"{CANARY}-reference", defendant={"name": CANARY})
        await partner.claim(f"ent_{CANARY}", CANARY)
        await partner.call("GET", f"/claims?cursor={CANARY}", headers={"X-Who": CANARY})
        await world.client.get(f"/connect/{CANARY}", headers={"traceparent": CANARY})
        await world.client.get(f"/v1/{CANARY}", headers={"Authorization": f"Bearer {CANARY}"})
        await world.client.request(CANARY.upper(), "/v1/claims", headers={"tracestate": CANARY})
    held = b"".join(collector.bodies)
    assert b"POST /v1/claims" in held
    assert CANARY.encode() not in held.lower()
    assert secret.encode() not in held
    with (
        pytest.raises(ValueError, match=CANARY),
        within([root := SpanRecord("root")]),
        span("part"),
    ):
        raise ValueError(CANARY)
    assert root.parts[0].attributes == {"error.type": "ValueError"}


async def test_attributes_are_listed(tmp_path, collector):
    """Another one is not exported, whoever adds it."""
    async with traced_world(tmp_path, collector.url) as world:
        trace = traces_of(world).begin("x", is_request=False)
        with trace.opened() as opened:
            opened.span.note(http__route="/v1/claims", user__email=CANARY)
        traces_of(world).end(trace)
    assert attributes(collector.spans[0]) == {"http.route": "/v1/claims"}


async def test_a_slow_collector_keeps_nobody_waiting(tmp_path, collector, monkeypatch):
    """Requests are answered while it answers none; what waits is bounded, and so is the end."""
    assert CLOSE_SECONDS_MAX < STOP_SECONDS_MAX
    small = {"QUEUE_MAX": 256, "BATCH_MAX": 64, "CLOSE_SECONDS_MAX": 0.1}
    for name, value in small.items():
        monkeypatch.setattr(otlp, name, value)
    collector.answers.clear()
    async with traced_world(tmp_path, collector.url) as world:
        queue = queue_of(traces_of(world))._queue  # noqa: SLF001 - how long it is
        assert (await world.client.get("/health/live")).status_code == 200
        for _ in range(8):
            trace = traces_of(world).begin("many", is_request=False)
            with trace.opened():
                for _ in range(PARTS_MAX + 1):
                    with span("part"):
                        pass
            assert len(trace.span.parts) == PARTS_MAX
            traces_of(world).end(trace)
            assert len(queue) <= 256
        assert await asyncio.to_thread(collector.asked.wait, PATIENCE_SECONDS)
        assert len(queue) > 128  # it does wait
        assert (await world.client.get("/health/live")).status_code == 200
        await asyncio.to_thread(traces_of(world).close)  # returns, although nobody answers
        assert not collector.answers.is_set()
        collector.answers.set()


async def test_a_collector_that_is_away_is_logged_once(tmp_path):
    """And requests are answered."""
    with structlog.testing.capture_logs() as lines:
        async with traced_world(tmp_path, f"http://127.0.0.1:{free_port()}") as world:
            for _ in range(3):
                answer = await world.client.get("/health/live")
                assert answer.status_code == 200
                export = export_of(traces_of(world))
                export._exporter._exporter._client._timeout = 0  # noqa: SLF001 - no second attempt
                await asyncio.to_thread(export._queue.force_flush)  # noqa: SLF001 - as above
    said = [line["event"] for line in lines if "collector" in line["event"]]
    assert said == ["the collector takes no traces: they are dropped"]


async def test_log_lines_have_the_trace(tmp_path, collector):
    """Ours and libraries'; and none after the request."""
    with logged() as stream:
        async with traced_world(tmp_path, collector.url) as world:
            await world.client.get("/health/live", headers={"traceparent": PARENT})
            structlog.get_logger().info("after")
            with traces_of(world).begin("x", PARENT, is_request=True).opened():
                logging.getLogger("asyncio").warning("of a library")
    lines = {line["event"]: line for line in map(json.loads, stream.getvalue().splitlines())}
    assert lines["request"]["trace_id"] == lines["of a library"]["trace_id"] == TRACE
    assert lines["request"]["span_id"] != lines["of a library"]["span_id"]
    assert "trace_id" not in lines["after"]


def test_pools_are_traced_only_where_traces_are(tmp_path, collector):
    """The pools of a service, by its settings."""
    plain = Service(settings_for(NOWHERE, tmp_path), deadline_seconds=PATIENCE_SECONDS)
    assert {type(pool) for one in plain.ledgers for pool in one.database.pools.values()} == {Pool}
    traced = Service(
        settings_for(NOWHERE, tmp_path, OTLP_URL=collector.url), deadline_seconds=PATIENCE_SECONDS
    )
    assert Pool not in {
        type(pool) for one in traced.ledgers for pool in one.database.pools.values()
    }
