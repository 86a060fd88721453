"""`GET /claims`: pages of 100 among few claims and among very many, and pages of 20 of the peer."""

import statistics
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.bench.load import http, prepare, run_load
from tests.bench.post_claims import peer
from tests.bench.stack import Served, Stack

FEW = 1_000
_TOKENS = 200
"""Pages that are asked for, besides the first: any of the list, the oldest claims' too."""

# Straight into the read model, which is all that a page reads. Every second claim belongs to the
# customer whose pages are read, the others to the other customers in turn.
_FILL = """
insert into live.claim_list
select 'clm_' || lpad(n::text, 26, '0'), n, gen_random_uuid(),
    'ptn_' || lpad(owner::text, 26, '0'), 'ent_' || lpad(owner::text, 26, '0'),
    'case-' || n, 'user-17', '["inv-1"]', 'triage', now()
from (
    select n, case when n % 2 = 0 then 1 else 2 + (n / 2) % {others} end as owner
    from generate_series(1, {claims}) as n
) as numbered
"""


class Options(NamedTuple):
    """How many claims there are, and how long and with how many clients each run takes."""

    claims: int
    clients: list[int]
    seconds: int
    rounds: int
    peer: str


def get_claims(stack: Stack, options: Options, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure pages of 100 on both databases in turn, then pages of 20 and the peer's in turn."""
    with ExitStack() as ending:
        services = {}
        for size in (FEW, options.claims):
            say(f"get_claims: filling {size}")
            url = stack.clone(f"claims_{size}")
            fill = _FILL.format(others=len(stack.customers) - 1, claims=size)
            stack.execute(url, fill, "vacuum analyze live.claim_list")
            services[size] = ending.enter_context(stack.service(f"claims_{size}", 1))
        largest = f"claims_{options.claims}"
        other = ending.enter_context(peer(stack, largest, options.peer, 1))
        return {
            "claims": options.claims,
            "page_of_100": _by_size(stack, services, options, say),
            "page_of_20": _of_peer(stack, services[options.claims], other, options, say),
        }


def _by_size(
    stack: Stack, services: Mapping[int, Served], options: Options, say: Callable[[str], None]
) -> dict[str, Any]:
    """Measure one request at a time; rounds alternate between the databases."""
    requests = {size: _pages(stack, size, 100) for size in services}
    latencies: dict[int, list[tuple[float, float]]] = {size: [] for size in services}
    for number in range(-1, options.rounds):  # the first warms up
        for size, service in services.items():
            say(f"get_claims: {size}, round {number + 1} of {options.rounds}")
            load = run_load(service.port, requests[size], 1, options.seconds)
            if number >= 0:
                latencies[size].append((load.p50_ms, load.p99_ms))
    p50, p99 = (
        {size: statistics.median(one[i] for one in latencies[size]) for size in services}
        for i in (0, 1)
    )
    return {
        "p50_ms": {str(size): round(p50[size], 3) for size in services},
        "p99_ms": {str(size): round(p99[size], 3) for size in services},
        "p50_ratio": round(p50[options.claims] / p50[FEW], 3),
        "p99_ratio": round(p99[options.claims] / p99[FEW], 3),
    }


def _of_peer(
    stack: Stack, service: Served, other: Served, options: Options, say: Callable[[str], None]
) -> dict[str, Any]:
    requests = _pages(stack, options.claims, 20)
    for served in (service, other):
        run_load(served.port, requests, 16, 2)
    table: dict[str, Any] = {}
    for clients in options.clients:
        rounds: list[dict[str, float]] = []
        for number in range(options.rounds):
            say(f"get_claims: {clients} clients, round {number + 1} of {options.rounds}")
            before = service.cpu()["api"]
            ours = run_load(service.port, requests, clients, options.seconds)
            spent = service.cpu()["api"] - before
            theirs = run_load(other.port, requests, clients, options.seconds)
            rounds.append({
                "service_per_second": ours.per_second,
                "service_p99_ms": ours.p99_ms,
                "api_cpu_ms_per_page": spent / ours.requests * 1000,
                "peer_per_second": theirs.per_second,
                "peer_p99_ms": theirs.p99_ms,
                "of_peer": ours.per_second / theirs.per_second,
            })  # fmt: skip
        table[str(clients)] = {
            name: round(statistics.median(one[name] for one in rounds), 3) for name in rounds[0]
        }
    return {"peer": options.peer, "clients": table}


def _pages(stack: Stack, size: int, limit: int) -> Path:
    """Return requests for pages spread over the first customer's whole list, the first included."""
    customer = stack.customers[0]
    requests = []
    for number in range(_TOKENS):
        query = {"entity_id": customer.entity_id, "limit": str(limit)}
        if number:
            query["page_token"] = f"clm_{number * size // _TOKENS // 2 * 2 or 2:026}"
        requests.append(http("GET", f"/v1/claims?{urlencode(query)}", customer.token))
    return prepare(stack.directory / f"pages_{size}_{limit}.requests", requests)
