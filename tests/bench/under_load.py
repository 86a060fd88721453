"""Memory of the processes and lag of numbering while claims are being created."""

from collections.abc import Callable
from typing import Any

from tests.bench.load import run_load
from tests.bench.post_claims import claim_requests
from tests.bench.processes import megabytes
from tests.bench.stack import Stack

GOAL_MEGABYTES = 150
CLIENTS = 64

# From the commit of an event to the commit of its position, by PostgreSQL's own record of both.
_LAG = """
select percentile_cont(array[0.5, 0.99, 1]) within group (order by extract(epoch from
    pg_xact_commit_timestamp(l.xmin) - pg_xact_commit_timestamp(e.xmin)) * 1000)
from live.log as l join live.events as e using (append_id)
where e.topic = 'ClaimCreated'
"""


def under_load(
    stack: Stack, seconds: int, workers: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Measure at 64 clients."""
    say(f"memory and sequencer_lag: {CLIENTS} clients")
    url = stack.clone("under_load")
    with stack.service("under_load", workers) as served:
        load = run_load(served.port, claim_requests(stack), CLIENTS, seconds)
        held = [megabytes(pid) for pid in served.api_pids()]
        following = [megabytes(pid) for pid in served.follower_pids()]
        ((lag,),) = stack.execute(url, _LAG)
    p50, p99, most = (round(float(one), 2) for one in lag)
    return {
        "claims_per_second": round(load.per_second, 1),
        "memory": {
            "goal_megabytes": GOAL_MEGABYTES,
            "worker_megabytes_max": max(held),
            "following_megabytes": max(following),
            "workers": workers,
        },
        "sequencer_lag": {"p50_ms": p50, "p99_ms": p99, "max_ms": most},
    }
