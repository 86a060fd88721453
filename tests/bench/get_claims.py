"""`GET /claims`: a page of 100 with few claims in the database and with very many."""

import statistics
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.bench.load import http, prepare, run_load
from tests.bench.stack import Stack

GOAL_P99 = 1.2
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


def get_claims(
    stack: Stack, claims: int, seconds: int, rounds: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Measure one request at a time; rounds alternate between the two databases."""
    sizes = {FEW: f"claims_{FEW}", claims: f"claims_{claims}"}
    latencies: dict[int, list[tuple[float, float]]] = {size: [] for size in sizes}
    with ExitStack() as ending:
        loads = {}
        for size, database in sizes.items():
            say(f"get_claims: filling {size}")
            url = stack.clone(database)
            fill = _FILL.format(others=len(stack.customers) - 1, claims=size)
            stack.execute(url, fill, "vacuum analyze live.claim_list")
            served = ending.enter_context(stack.service(database, 1))
            requests = _pages(stack, size)
            run_load(served.port, requests, 1, 1)
            loads[size] = (served.port, requests)
        for number in range(rounds):
            for size, (port, requests) in loads.items():
                say(f"get_claims: {size}, round {number + 1} of {rounds}")
                load = run_load(port, requests, 1, seconds)
                latencies[size].append((load.p50_ms, load.p99_ms))
    p50, p99 = (
        {size: statistics.median(one[i] for one in latencies[size]) for size in sizes}
        for i in (0, 1)
    )
    return {
        "goal_p99_ratio": GOAL_P99,
        "p50_ms": {str(size): round(p50[size], 3) for size in sizes},
        "p99_ms": {str(size): round(p99[size], 3) for size in sizes},
        "p50_ratio": round(p50[claims] / p50[FEW], 3),
        "p99_ratio": round(p99[claims] / p99[FEW], 3),
    }


def _pages(stack: Stack, size: int) -> Path:
    """Return requests for pages spread over the first customer's whole list, the first included."""
    customer = stack.customers[0]
    requests = []
    for number in range(_TOKENS):
        query = {"entity_id": customer.entity_id, "limit": "100"}
        if number:
            query["page_token"] = f"clm_{number * size // _TOKENS // 2 * 2 or 2:026}"
        requests.append(http("GET", f"/v1/claims?{urlencode(query)}", customer.token))
    return prepare(stack.directory / f"pages_{size}.requests", requests)
