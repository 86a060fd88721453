"""The README's main path through containers: from a partner to a claim and its replay."""

import json
from collections.abc import Callable, Sequence

import httpx

from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS
from tests.world import TEAM, claim_body


def main_path(run: Callable[[Sequence[str]], str], port: int) -> None:
    """Make a partner, connect it to a business, and create a claim, as the README does.

    `run` runs a command in a container of the API and returns what it prints.
    """

    def team(*words):
        return json.loads(run(["claim-ledger", *words, "--json"]))

    team("staff", "add", TEAM)
    partner_id = team("partners", "add", "Books", "--email", "books@example.com")["partner_id"]
    team("partners", "approve", partner_id)
    token = team("keys", "issue", partner_id, "--mode", "live")["token"]
    entity_id = team("entities", "add", "Bakery", "--email", "b@example.com")["entity_id"]
    authorization = {"Authorization": f"Bearer {token}"}
    with httpx.Client(
        base_url=f"http://127.0.0.1:{port}/v1",
        headers=authorization,
        timeout=PATIENCE_SECONDS,
        verify=NO_TLS,
    ) as client:
        link = client.post("/connect-requests", json={"partner_user_id": "u"}).json()
        team("connect", "approve", link["connect_url"], "--entity", entity_id)
        made, again = (client.post("/claims", json=claim_body(entity_id)) for _ in range(2))
        listed = client.get("/claims", params={"entity_id": entity_id})
    assert (made.status_code, again.status_code) == (201, 200)
    assert again.headers["Idempotent-Replayed"] == "true"
    claim_id = made.json()["claim_id"]
    assert [one["claim_id"] for one in listed.json()["claims"]] == [claim_id]
    assert team("claims", "show", claim_id)["claim_id"] == claim_id
