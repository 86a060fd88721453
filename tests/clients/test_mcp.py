"""`claim-ledger mcp`, used by the protocol's own client against a running dev."""

import json
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from tests.dev_process import PROGRAM, environment, run
from tests.snippets import blocks

pytestmark = [pytest.mark.server, pytest.mark.timeout(1_800)]


def text_of(result) -> dict:
    """Return the JSON that a tool answered."""
    (content,) = result.content
    assert json.loads(content.text) == result.structured_content
    return result.structured_content


async def test_an_assistant_creates_a_claim_in_the_sandbox(dev):
    """It reads the guide, sees the tools, creates a claim, lists it, and is refused by code."""
    (page,) = blocks(Path("docs/partners/sandbox.md"), "json")
    (shown,) = json.loads(page)["mcpServers"].values()
    assert (shown["command"], list(shown["env"])) == (PROGRAM.name, ["CLAIMS_API_KEY"])
    *words, url = shown["args"]
    assert url == "https://api.example.com/v1"
    server = StdioServerParameters(
        command=str(PROGRAM),
        args=[*words, dev.facts["base_url"]],
        env={"CLAIMS_API_KEY": dev.facts["test_key"]},
    )
    entity_id = dev.facts["sandbox"]["connected_entity_id"]
    claim = {
        "entity_id": entity_id,
        "partner_claim_id": "assistant-1",
        "defendant": {"name": "Debtor Ltd"},
        "invoices": [{"number": "INV-1", "total_amount_for_invoice": "10.00"}],
    }
    async with Client(server) as client:
        tools = {one.name: one for one in (await client.list_tools()).tools}
        resources = [str(one.uri) for one in (await client.list_resources()).resources]
        guide = (await client.read_resource("claim-ledger://guide")).contents[0].text
        about = {name: claim[name] for name in ("entity_id", "partner_claim_id")}
        file = {"filename": "invoice.pdf", "mime_type": "application/pdf", "text": "%PDF-1.7"}
        document = text_of(await client.call_tool("upload_document", about | file))
        claim["document_refs"] = [document]
        created = text_of(await client.call_tool("create_claim", claim))
        listed = text_of(await client.call_tool("list_claims", {"entity_id": entity_id}))
        refused = await client.call_tool("create_claim", claim | {"invoices": []})
    assert tools["list_claims"].annotations.read_only_hint
    assert not tools["request_connection"].annotations.idempotent_hint
    assert "claim-ledger://operations/create_claim" in resources
    assert "idempotency keys" in guide
    assert len(created["document_ids"]) == 1
    assert created["claim_id"] in [one["claim_id"] for one in listed["claims"]]
    assert refused.is_error
    assert text_of(refused)["code"] == "validation_failed"


def test_a_service_that_is_away_is_one_line(dev):
    """No traceback where nothing answers; the key is not shown."""
    key = dev.facts["test_key"]
    env = environment() | {"CLAIMS_API_KEY": key}
    done = run("mcp", "--url", "http://127.0.0.1:9/v1", env=env)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: http://127.0.0.1:9/v1: no answer (ConnectError).\n"
