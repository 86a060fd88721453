"""Rebuilding `claim_list`: its speed, how that grows, and what clients notice meanwhile."""

import asyncio
import json
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import asyncpg

from tests.bench.filled_log import fill
from tests.bench.load import Load, http, prepare, run_load
from tests.bench.post_claims import claim_requests
from tests.bench.stack import Stack

GOAL_COPY_RATIO = 0.5
GOAL_P99_RATIO = 2.0
CLIENTS = 4
PAIRS = 3
WARM_SECONDS = 5
"""After ten million events were written PostgreSQL is busy with its disk for a while."""

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
    asyncio.run(fill(stack, url, size // 2))
    stack.execute(url, "vacuum analyze")
    _rebuild(stack, url)  # makes the rows that are copied below
    seconds, copies = [], []
    for number in range(rounds):
        say(f"rebuild: {size} events, round {number + 1} of {rounds}")
        seconds.append(_rebuild(stack, url)["seconds"])
        copies.append(asyncio.run(copy_out_and_in(stack, url)))
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
    program = str(stack.program)
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


async def copy_out_and_in(stack: Stack, url: str) -> float:
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
