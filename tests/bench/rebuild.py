"""Rebuilding `claim_list`: its speed, how that grows, and what clients notice meanwhile."""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import asyncpg

from service.app.bootstrap import Service
from service.app.settings import SERVE, Settings
from service.facts.claims import ClaimCreated, FirstMessagePosted
from service.ledger.events import Event, Meta
from service.ledger.ledger import Ledger
from tests.bench.load import Load, http, prepare, run_load
from tests.bench.post_claims import claim_requests
from tests.bench.stack import Stack

GOAL_COPY_RATIO = 0.5
GOAL_P99_RATIO = 2.0
FILL_CLAIMS = 10_000
"""Written at a time."""
CLIENTS = 4
PAIRS = 3
WARM_SECONDS = 5
"""After ten million events were written PostgreSQL is busy with its disk for a while."""
_NUMBER = """
insert into live.log (position, append_id, leaf_hash)
select (select size from live.head) + row_number() over (order by append_id), append_id, sha256('')
from live.events as e
where not exists (select from live.log as l where l.append_id = e.append_id)
"""
_HEAD = "update live.head set size = (select max(position) from live.log), tree = null"
_DETAILS = {
    "defendant": {"name": "Debtor", "address": {"street": "1 Example Street", "city": "Example"}},
    "invoices": [{"number": "INV-1", "total_amount_for_invoice": "10.00"}],
}

Say = Callable[[str], None]


def rebuild(stack: Stack, sizes: Sequence[int], rounds: int, say: Say) -> dict[str, Any]:
    """Measure on logs of these sizes, the smallest first; clients run on the largest."""
    grown = {size: _at(stack, size, rounds, say) for size in sorted(sizes)}
    smallest, largest = min(sizes), max(sizes)
    cost = {size: one["microseconds_per_event"] for size, one in grown.items()}
    return {
        "goal_copy_ratio": GOAL_COPY_RATIO,
        "by_events": {str(size): one for size, one in grown.items()},
        "cost_ratio": round(cost[largest] / cost[smallest], 3),
        "under_load": _under_load(stack, _database(largest), say),
    }


def _database(size: int) -> str:
    return f"rebuild_{size}"


def _at(stack: Stack, size: int, rounds: int, say: Say) -> dict[str, Any]:
    say(f"rebuild: filling {size} events")
    url = stack.clone(_database(size))
    asyncio.run(_fill(stack, url, size // 2))
    stack.execute(url, "vacuum analyze")
    _rebuild(stack, url)  # makes the rows that are copied below
    seconds, copies = [], []
    for number in range(rounds):
        say(f"rebuild: {size} events, round {number + 1} of {rounds}")
        seconds.append(_rebuild(stack, url)["seconds"])
        copies.append(asyncio.run(_copy(stack, url)))
    spent, copied = statistics.median(seconds), statistics.median(copies)
    ((rows,),) = stack.execute(url, "select count(*) from live.claim_list")
    found = {
        "rows": rows,
        "seconds": round(spent, 3),
        "copy_out_and_in_seconds": round(copied, 3),
        "copy_ratio": round(copied / spent, 3),
        "events_per_second": round(size / spent),
        "microseconds_per_event": round(spent / size * 1e6, 3),
    }
    say(f"rebuild: {size} events: {json.dumps(found)}")  # an hour's work, whatever follows
    return found


def _command(stack: Stack, url: str) -> subprocess.Popen[bytes]:
    """Run the operator's command in a process of its own."""
    program = str(Path(sys.executable).parent / "claim-ledger")
    command = [program, "projections", "rebuild", "claim_list", "--ledger", "live", "--json"]
    environment = stack.environment(url)
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)


def _rebuild(stack: Stack, url: str) -> dict[str, Any]:
    return _answer(_command(stack, url))


def _answer(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    out, _ = process.communicate()
    answer = json.loads(out)
    if process.returncode or not answer["rebuilt"][0]["swapped"]:
        raise RuntimeError(f"the rebuild failed: {answer}")
    return answer["rebuilt"][0]


async def _copy(stack: Stack, url: str) -> float:
    """Return the seconds that COPY takes to write the same rows out and into a similar table."""
    connection = await asyncpg.connect(url)
    path = str(stack.directory / "claim_list.copy")
    await connection.execute("drop table if exists live.copied")
    await connection.execute("create table live.copied (like live.claim_list including all)")
    started = time.perf_counter()
    await connection.copy_from_table("claim_list", schema_name="live", output=path)
    await connection.copy_to_table("copied", schema_name="live", source=path)
    seconds = time.perf_counter() - started
    await connection.execute("drop table live.copied")
    await connection.close()
    return seconds


def _under_load(stack: Stack, database: str, say: Say) -> dict[str, Any]:
    """Measure p99 of POST and GET side by side, alternately with and without a rebuild."""
    url = stack.url_of(database)
    seconds = max(2, round(_rebuild(stack, url)["seconds"]))
    p99: dict[str, list[float]] = {}
    with stack.service(database, 1) as served:
        requests = {"post": claim_requests(stack), "get": _pages(stack)}
        for path in requests.values():
            run_load(served.port, path, CLIENTS, WARM_SECONDS)
        for number in range(PAIRS):
            for kind in ("alone", "beside"):
                say(f"rebuild: clients {kind}, round {number + 1} of {PAIRS}")
                process = _command(stack, url) if kind == "beside" else None
                for name, load in _both(served.port, requests, seconds).items():
                    p99.setdefault(f"{name}_{kind}", []).append(load.p99_ms)
                if process is not None:
                    _answer(process)
    medians = {name: statistics.median(of) for name, of in p99.items()}
    return {
        "goal_p99_ratio": GOAL_P99_RATIO,
        "clients": 2 * CLIENTS,
        "p99_ms": {name: round(one, 2) for name, one in medians.items()},
        "post_p99_ratio": round(medians["post_beside"] / medians["post_alone"], 3),
        "get_p99_ratio": round(medians["get_beside"] / medians["get_alone"], 3),
    }


def _both(port: int, requests: dict[str, Path], seconds: int) -> dict[str, Load]:
    with ThreadPoolExecutor() as pool:
        running = {
            name: pool.submit(run_load, port, path, CLIENTS, seconds)
            for name, path in requests.items()
        }
        return {name: one.result() for name, one in running.items()}


def _pages(stack: Stack) -> Path:
    requests = [
        http("GET", f"/v1/claims?{urlencode({'entity_id': one.entity_id})}", one.token)
        for one in stack.customers
    ]
    return prepare(stack.directory / "rebuild_pages.requests", requests)


async def _fill(stack: Stack, url: str, claims: int) -> None:
    """Write numbered claims with their first messages into the log, for customers in turn."""
    service = Service(Settings.from_environment(stack.environment(url), require=SERVE))
    ledger = service.modes["live"].ledger
    connection = await asyncpg.connect(url)
    columns = ("originator_id", "originator_version", "topic", "state")
    for start in range(0, claims, FILL_CLAIMS):
        rows = _events(ledger, range(start, min(start + FILL_CLAIMS, claims)), len(stack.customers))
        await connection.copy_records_to_table(
            "events", schema_name="live", columns=columns, records=rows
        )
    for statement in (_NUMBER, _HEAD, "delete from live.pending"):
        await connection.execute(statement)
    await connection.close()


def _events(
    ledger: Ledger, numbers: range, customers: int
) -> Iterator[tuple[object, int, str, bytes]]:
    meta = Meta(datetime(2026, 3, 1, tzinfo=UTC), "partner:bench/bench", "req_bench", "live")
    key = ledger.master_keys.new_data_key(uuid4())
    for number in numbers:
        stream, owner = uuid4(), f"{1 + number % customers:026}"
        claim_id, partner_id, entity_id = f"clm_{number:026}", f"ptn_{owner}", f"ent_{owner}"
        facts: list[Event] = [
            ClaimCreated(
                claim_id=claim_id,
                partner_id=partner_id,
                entity_id=entity_id,
                partner_claim_id=f"case-{number}",
                partner_user_id="user-17",
                partner_invoice_ids=["INV-1"],
                fingerprint="0" * 64,
                details=_DETAILS,
            ),
            FirstMessagePosted(
                claim_id=claim_id,
                message_id=f"msg_{number:026}",
                partner_id=partner_id,
                entity_id=entity_id,
                text="Please collect this claim. " * 5,
            ),
        ]
        for version, event in enumerate(facts, 1):
            state = ledger.codec.encode(stream, version, event, meta, key)
            yield stream, version, type(event).__name__, state
