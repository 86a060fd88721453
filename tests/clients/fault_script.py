"""A client's program, run against a dev through the fault server; and what the ledger has then."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.dev_process import Dev
from tests.patience import PATIENCE_SECONDS

TIMEOUT_SECONDS = 10
"""Of a client's attempt: longer than an answer takes on a machine that is busy."""
SLOW_SECONDS = 15
"""Of an answer that comes too late."""


@contextmanager
def fault_server(dev: Dev, seed: str) -> Generator[str, None, None]:
    """Yield the API's address behind a server that fails by the script of this seed."""
    upstream = dev.facts["public_url"]
    command = [sys.executable, "-m", "tests.clients.fault_server"]
    given = ["--upstream", upstream, "--seed", seed, "--slow", str(SLOW_SECONDS)]
    with subprocess.Popen([*command, *given], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield json.loads(server.stdout.readline())["base_url"]
        finally:
            server.terminate()


def report(base_url: str) -> dict[str, dict[str, int]]:
    """Return how many requests failed in which way, and how many reached the service."""
    return httpx.get(f"{base_url.removesuffix('/v1')}/-/report", timeout=PATIENCE_SECONDS).json()


def claims_in(dev: Dev, entity_id: str, prefix: str) -> Counter[tuple[str, str]]:
    """Return the reference and the id of each claim that the service itself lists."""
    found: Counter[tuple[str, str]] = Counter()
    query: dict[str, Any] = {"entity_id": entity_id, "limit": 200}
    while True:
        page = httpx.get(
            f"{dev.facts['base_url']}/claims",
            params=query,
            headers={"Authorization": f"Bearer {dev.facts['live_key']}"},
            timeout=PATIENCE_SECONDS,
        ).json()
        pairs = [(one["partner_claim_id"], one["claim_id"]) for one in page["claims"]]
        found.update(pair for pair in pairs if pair[0].startswith(prefix))
        if page["next_page_token"] is None:
            return found
        query["page_token"] = page["next_page_token"]
