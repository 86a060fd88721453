"""`POST /claims` through the full service, beside pgbench, a bare server and the peer."""

import json
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.load import MARK, http, prepare, run_load
from tests.bench.pgbench import NUMBER_STREAMS, payload, run_pgbench, script
from tests.bench.processes import megabytes
from tests.bench.stack import Served, Stack
from tests.processes import free_port

PEER_TABLE = """create table claims (
    claim_id uuid primary key, entity_id text not null, partner_claim_id text not null unique,
    body jsonb not null, created_at timestamptz not null
)"""


class Options(NamedTuple):
    """How long each run takes, and with how many processes."""

    clients: list[int]
    seconds: int
    rounds: int
    workers: int
    peer: str
    """`tuned`: uvicorn's faster parser, a pool that stays open; `plain`: what comes by default."""


def claim_body(entity_id: str) -> bytes:
    """Return a claim of a usual size; its reference is replaced in every request."""
    claim = {
        "entity_id": entity_id,
        "partner_claim_id": MARK,
        "partner_user_id": "user-17",
        "partner_invoice_ids": ["inv-1"],
        "defendant": {
            "name": "Example Debtor Ltd",
            "email": "accounts@example.com",
            "address": {
                "first_line": "1 Example Street",
                "second_line": None,
                "town_city": "London",
                "county": "Greater London",
                "postcode": "AB1 2CD",
                "country": "GB",
            },
            "is_consumer": False,
            "company_registration_number": "00000000",
        },
        "invoices": [
            {
                "number": "INV-1001",
                "total_amount_for_invoice": "1250.00",
                "created_date": "2026-01-05",
                "due_date": "2026-02-04",
                "summary": "Web design, January",
            }
        ],
        "message": "The work was delivered on time and accepted in writing. Two reminders "
        "were sent and not answered.",
        "contract_date": "2025-11-03T09:00:00.000Z",
        "is_written": True,
    }
    return json.dumps(claim).encode()


def claim_requests(stack: Stack) -> Path:
    """Return a file with one request for each partner."""
    return prepare(
        stack.directory / "claims.requests",
        [http("POST", "/v1/claims", c.token, claim_body(c.entity_id)) for c in stack.customers],
    )


@contextmanager
def peer(stack: Stack, database: str, kind: str, workers: int) -> Iterator[Served]:
    """Run the peer on a database of the same cluster."""
    port = free_port()
    url = stack.url_of(database).replace("postgresql:", "postgresql+asyncpg:")
    command = [
        *(sys.executable, "-m", "uvicorn", "tests.bench.peer:app", "--port", str(port)),
        *("--workers", str(workers), "--log-level", "warning", "--no-access-log"),
        *("--http", "httptools" if kind == "tuned" else "h11"),
    ]
    environment = {"PEER_DATABASE_URL": url, "PEER": kind}
    with stack.server(command, environment, port, "/health") as served:
        yield served


@contextmanager
def bare(stack: Stack, statements: Path, given: dict[str, str], url: str) -> Iterator[Served]:
    """Run the bare server on a database of the same cluster."""
    port = free_port()
    command = [sys.executable, "-m", "tests.bench.bare", str(statements), json.dumps(given), url]
    with stack.server([*command, str(port)], {}, port, "/") as served:
        yield served


def post_claims(stack: Stack, options: Options, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure them side by side in every round, so that they compare."""
    yardstick = stack.clone("pgbench")
    stack.execute(yardstick, NUMBER_STREAMS)
    stack.clone("post_claims")
    requests = claim_requests(stack)
    statements = stack.directory / "claims.pgbench"
    statements.write_text(script())
    stack.execute(stack.url_of("postgres"), "create database peer")
    stack.execute(stack.url_of("peer"), PEER_TABLE)
    with ExitStack() as ending:
        service = ending.enter_context(stack.service("post_claims", options.workers))
        other = ending.enter_context(peer(stack, "peer", options.peer, options.workers))
        for served in (service, other):
            run_load(served.port, requests, 16, 2)  # caches, prepared statements, pools
        given = payload(stack.url_of("post_claims")) | {"partners": str(len(stack.customers))}
        run_pgbench(yardstick, statements, given, 16, 1)
        least = ending.enter_context(bare(stack, statements, given, yardstick))
        run_load(least.port, requests, 16, 1)
        table: dict[str, Any] = {}
        for clients in options.clients:
            rounds: list[dict[str, float]] = []
            for number in range(options.rounds):
                say(f"post_claims: {clients} clients, round {number + 1} of {options.rounds}")
                before = service.cpu()
                ours = run_load(service.port, requests, clients, options.seconds)
                spent = {kind: used - before[kind] for kind, used in service.cpu().items()}
                tps, mean_ms = run_pgbench(yardstick, statements, given, clients, options.seconds)
                floor = run_load(least.port, requests, clients, options.seconds)
                theirs = run_load(other.port, requests, clients, options.seconds)
                rounds.append({
                    "service_per_second": ours.per_second,
                    "service_p50_ms": ours.p50_ms,
                    "service_p99_ms": ours.p99_ms,
                    "api_cpu_ms_per_claim": spent["api"] / ours.requests * 1000,
                    "worker_cpu_ms_per_claim": spent["worker"] / ours.requests * 1000,
                    "pgbench_per_second": tps,
                    "pgbench_mean_ms": mean_ms,
                    "bare_per_second": floor.per_second,
                    "bare_p50_ms": floor.p50_ms,
                    "peer_per_second": theirs.per_second,
                    "peer_p50_ms": theirs.p50_ms,
                    "peer_p99_ms": theirs.p99_ms,
                    "of_pgbench": ours.per_second / tps,
                    "of_bare": ours.per_second / floor.per_second,
                    "of_peer": ours.per_second / theirs.per_second,
                    "bare_of_pgbench": floor.per_second / tps,
                    "bare_of_peer": floor.per_second / theirs.per_second,
                })  # fmt: skip
            table[str(clients)] = {
                name: round(statistics.median(one[name] for one in rounds), 3) for name in rounds[0]
            }
        held = {
            "api": max(map(megabytes, service.api_pids())),
            "worker": max(map(megabytes, service.follower_pids())),
        }
    return {
        "workers": options.workers,
        "peer": options.peer,
        "peak_megabytes": held,
        "clients": table,
    }
