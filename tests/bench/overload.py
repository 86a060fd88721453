"""Twice the load that the service can answer: what it answers, and what it refuses, and how."""

import json
import secrets
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from tests.bench.load import MARK, http, prepare, run_load
from tests.bench.post_claims import claim_body
from tests.bench.processes import megabytes
from tests.bench.stack import Customer, Served, Stack
from tests.no_tls import NO_TLS

FACTOR = 2.0
CLIENTS = 64
"""Of the closed loop that the peak is measured with, on the same mix of sizes."""
LARGE_EVERY = 50
LARGE_BYTES = 900 * 1024
SUMMARY = "x" * 1900
ALONE = 50
"""Claims one after another: what is normal, before and afterwards."""
CREATED, REFUSED, DISCONNECTED = 201, {429, 503}, 403
Say = Callable[[str], None]

_KEPT = """
select count(*), count(distinct (l.partner_id, l.entity_id, l.partner_claim_id)),
    count(distinct e.originator_id)
from live.claim_list as l
left join live.events as e on e.originator_id = l.stream_id and e.topic = 'ClaimCreated'
"""


class Answer(NamedTuple):
    """A line of the results."""

    number: int
    due: float
    answered: float
    status: int
    retry_after: int | None
    claim_id: str | None

    @property
    def seconds(self) -> float:
        """From when it was due."""
        return self.answered - self.due


def overload(stack: Stack, seconds: int, workers: int, say: Say) -> dict[str, Any]:
    """Measure the peak, offer twice as much for a while, and look at what is left."""
    url = stack.clone("overload")
    requests, customers = _mixed(stack)
    with stack.service("overload", workers) as served:
        run_load(served.port, requests, CLIENTS, 3, check=False)
        say("overload: the peak, closed loop")
        peak = run_load(served.port, requests, CLIENTS, max(4, seconds // 6), check=False)
        peak_per_second = (peak.requests - peak.refused) / peak.seconds
        normal = max(_alone(served, stack.customers[0]))
        say(f"overload: {FACTOR:g} times {peak_per_second:.0f} a second for {seconds} s")
        with _beside(stack, url, seconds, say) as beside:
            answers, generator = _offer(stack, served, requests, FACTOR * peak_per_second, seconds)
            ended = max(one.due for one in answers)
            back = _normal_after(served, stack.customers[0], ended, 2 * normal)
        held = {
            "api": max(map(megabytes, served.api_pids())),
            "worker": max(map(megabytes, served.follower_pids())),
        }
        _wait_until_numbered(stack, url)
    found = _figures(answers, seconds, peak_per_second, beside, customers)
    return {
        "workers": workers,
        "generator": generator
        | {"cpu_share": round(generator["cpu_seconds"] / seconds, 2)},
        **found,
        "normal_after_seconds": round(back, 2),
        "peak_megabytes": held,
        "rebuild": beside.rebuild,
        **_kept(stack, url, [one.claim_id for one in answers if one.status == CREATED]),
    }  # fmt: skip


def large_body(entity_id: str) -> bytes:
    """Return a claim of about 900 KiB."""
    claim = json.loads(claim_body(entity_id))
    count = LARGE_BYTES // (len(SUMMARY) + 50)
    claim["invoices"] = [{"number": f"INV-{n}", "summary": SUMMARY} for n in range(count)]
    return json.dumps(claim).encode()


def _mixed(stack: Stack) -> tuple[Path, list[Customer]]:
    """Return the file of requests, one of fifty large, and whose each of them is."""
    found = stack.customers
    requests = [
        http(
            "POST",
            "/v1/claims",
            one.token,
            large_body(one.entity_id) if number % LARGE_EVERY == 0 else claim_body(one.entity_id),
        )
        for number, one in enumerate(found)
    ]
    assert all(MARK.encode() in request for request in requests)
    return prepare(stack.directory / "overload.requests", requests), found


def _alone(served: Served, customer: Customer) -> list[float]:
    """Return the seconds of claims that come one after another."""
    return [_one(served, customer)[0] for _ in range(ALONE)]


def _one(served: Served, customer: Customer) -> tuple[float, int]:
    body = claim_body(customer.entity_id).replace(MARK.encode(), secrets.token_hex(10).encode())
    headers = {
        "Authorization": f"Bearer {customer.token}",
        "Content-Type": "application/json",
    }
    began = time.monotonic()
    url = f"http://127.0.0.1:{served.port}/v1/claims"
    status = httpx.post(url, content=body, headers=headers, timeout=10, verify=NO_TLS).status_code
    return time.monotonic() - began, status


def _normal_after(served: Served, customer: Customer, ended: float, limit: float) -> float:
    """Return the seconds after the load until ten claims in a row were answered as before it."""
    good, since = 0, 0.0
    while good < 10:
        seconds, status = _one(served, customer)
        if seconds > limit or status != CREATED:
            good = 0
            continue
        since = since if good else time.monotonic()
        good += 1
    return max(0.0, since - ended)


def _offer(
    stack: Stack, served: Served, requests: Path, per_second: float, seconds: int
) -> tuple[list[Answer], dict[str, Any]]:
    results = stack.directory / "overload.results"
    command = [
        *(sys.executable, str(Path(__file__).parent / "open_load.py"), str(served.port)),
        *(str(requests), secrets.token_hex(4), str(per_second), str(seconds), str(results)),
    ]
    said = subprocess.run(command, check=True, capture_output=True, timeout=seconds + 60)
    lines = results.read_text().splitlines()
    return sorted(Answer(*json.loads(line)) for line in lines), json.loads(said.stdout)


class Beside:
    """What happened beside the load."""

    def __init__(self) -> None:
        self.disconnected: dict[str, float] = {}
        """When a disconnection was acknowledged, by entity."""
        self.rebuild: dict[str, Any] = {}


@contextmanager
def _beside(stack: Stack, url: str, seconds: int, say: Say) -> Iterator[Beside]:
    """Disconnect a customer now and then, and rebuild a read model, with the team's commands."""
    beside, over = Beside(), threading.Event()
    program = str(stack.program)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, *words, "--json"],
            env=stack.environment(url),
            capture_output=True,
            text=True,
            check=False,
        )

    def rebuild() -> None:
        over.wait(seconds / 6)
        began = time.monotonic()
        done = run("projections", "rebuild", "claim_list", "--ledger", "live")
        beside.rebuild = {
            "exit_code": done.returncode,
            "seconds": round(time.monotonic() - began, 1),
        }

    def disconnect() -> None:
        number = len(stack.customers)
        while not over.wait(max(1.0, seconds / 12)) and number > 1:
            customer = stack.customers[number - 1]
            done = run(
                *("entities", "disconnect", customer.entity_id, "--partner", f"ptn_{number:026}")
            )
            if done.returncode == 0:
                beside.disconnected[customer.entity_id] = time.monotonic()
            else:
                say(f"overload: a disconnection failed: {done.stdout}{done.stderr}"[:300])
            number -= 1

    threads = [threading.Thread(target=one) for one in (rebuild, disconnect)]
    for thread in threads:
        thread.start()
    try:
        yield beside
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _figures(
    answers: list[Answer],
    seconds: int,
    peak_per_second: float,
    beside: Beside,
    customers: list[Customer],
) -> dict[str, Any]:
    began = answers[0].due
    accepted = [one for one in answers if one.status == CREATED]
    refused = [one for one in answers if one.status in REFUSED]

    def entity(one: Answer) -> str:
        return customers[one.number % len(customers)].entity_id

    after = [
        one
        for one in accepted
        if one.due > beside.disconnected.get(entity(one), float("inf"))
    ]  # fmt: skip
    rightly = Counter(
        one.status == DISCONNECTED and entity(one) in beside.disconnected for one in answers
    )[True]
    in_time = sum(one.answered <= began + seconds for one in accepted)
    return {
        "seconds": seconds,
        "peak_per_second": round(peak_per_second, 1),
        "offered": len(answers),
        "goodput_per_second": round(in_time / seconds, 1),
        "goodput_ratio": round(in_time / seconds / peak_per_second, 3),
        "statuses": {str(k): n for k, n in sorted(Counter(a.status for a in answers).items())},
        "accepted": _latencies(accepted),
        "refused": _latencies(refused)
        | {"without_retry_after": sum(one.retry_after is None for one in refused)},
        "unexpected": len(answers) - len(accepted) - len(refused) - rightly,
        "disconnections": len(beside.disconnected),
        "accepted_after_disconnection": len(after),
    }  # fmt: skip


def _latencies(answers: list[Answer]) -> dict[str, Any]:
    if not answers:
        return {"count": 0}
    ordered = sorted(one.seconds for one in answers)
    return {
        "count": len(ordered),
        "p50_seconds": round(ordered[len(ordered) // 2], 3),
        "p99_seconds": round(ordered[len(ordered) * 99 // 100], 3),
        "max_seconds": round(ordered[-1], 3),
    }


def _wait_until_numbered(stack: Stack, url: str) -> None:
    while stack.execute(url, "select from live.pending limit 1"):
        time.sleep(0.1)


def _kept(stack: Stack, url: str, acknowledged: list[str | None]) -> dict[str, Any]:
    """Compare what was acknowledged with the ledger."""
    ((rows, keys, streams),) = stack.execute(url, _KEPT)
    found = {row[0] for row in stack.execute(url, "select claim_id from live.claim_list")}
    ((numbered,),) = stack.execute(
        url, "select (select count(*) from live.events) - (select count(*) from live.log)"
    )
    return {
        "acknowledged": len(acknowledged),
        "lost": len([one for one in acknowledged if one not in found]),
        "doubled": len(acknowledged) - len(set(acknowledged)) + rows - min(keys, streams),
        "unnumbered": numbered,
    }
