"""A real `serve`, its API processes forked and its worker beside them, exports traces.

Apart from `just test`, which has the same in one process: `just test-monitoring`.
"""

import json

import httpx
import pytest

from tests.otlp_receiver import OtlpReceiver, attributes, receiver
from tests.patience import PATIENCE_SECONDS, until
from tests.serving import served
from tests.world import claim_body, settings_for, world_on

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]

TRACE = "0af7651916cd43dd8448eb211c80319c"
STEPS = {"live.sequencer", "live.activity"}


def claim(url: str, key: str, entity_id: str, reference: str) -> httpx.Response:
    """Create a claim within a caller's trace."""
    headers = {
        "Authorization": f"Bearer {key}",
        "traceparent": f"00-{TRACE}-b7ad6b7169203331-01",
    }
    return httpx.post(
        f"{url}/v1/claims",
        json=claim_body(entity_id, reference),
        headers=headers,
        timeout=PATIENCE_SECONDS,
    )


def names(collector: OtlpReceiver) -> set[str]:
    """Return what has been received."""
    return {span.name for span in collector.spans}


async def test_serve_exports_traces(database_url, tmp_path):
    """Of API and worker; its log has the ids; a collector that hangs keeps nobody waiting."""
    async with world_on(settings_for(database_url, tmp_path), tmp_path, follow=False) as world:
        partner, entity_id = await world.connected()
    key = partner.keys["live"]
    with receiver() as collector:
        given = {"OTLP_URL": collector.url, "TRACED_PERCENT": "100"}
        with served(database_url, tmp_path, **given) as serving:
            answer = claim(serving.url, key, entity_id, "one")
            assert answer.status_code == 201
            assert answer.headers["traceparent"].startswith(f"00-{TRACE}-")
            wanted = {"POST /v1/claims", "authenticate", "write", "commit"} | STEPS
            until(lambda: wanted <= names(collector), lambda: names(collector), look=0.1)
            (root,) = [one for one in collector.spans if one.name == "POST /v1/claims"]
            lines = [json.loads(line) for line in serving.log.read_text().splitlines()]
            (line,) = [one for one in lines if one.get("trace_id") == TRACE]
            assert line["request_id"] == attributes(root)["claim_ledger.request_id"]
            assert line["span_id"] == root.span_id.hex()
            collector.answers.clear()
            collector.asked.clear()
            assert claim(serving.url, key, entity_id, "two").status_code == 201
            until(collector.asked.is_set, look=0.1)
            assert claim(serving.url, key, entity_id, "three").status_code == 201
        # It has ended, although the collector answers nothing; none had to be killed.
        assert "Killing worker" not in serving.log.read_text()
        assert not collector.answers.is_set()
