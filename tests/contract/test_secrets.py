"""A key's secret is shown once and stored nowhere (contract 5.3)."""

import httpx
import pytest

from tests.contract.rows import rows_as_text
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS
from tests.serving import served
from tests.world import claim_body

pytestmark = pytest.mark.in_process("reads the log of a server of its own")


@pytest.mark.followed
async def test_neither_tables_nor_logs_have_a_secret(world, database_url, tmp_path):
    """That includes link tokens, and other text sent in place of a key."""
    partner, entity = await world.connected()
    headers = {"Authorization": f"Bearer {partner.keys['live']}"}
    wrong = {"Authorization": f"Bearer {partner.keys['live']}WRONG"}
    with served(database_url, tmp_path, LOG_LEVEL="debug") as server:
        async with httpx.AsyncClient(
            base_url=server.url, headers=headers, timeout=PATIENCE_SECONDS, verify=NO_TLS
        ) as client:
            made = await client.post("/v1/claims", json=claim_body(entity))
            link = await client.post("/v1/connect-requests", json={"partner_user_id": "u"})
            refused = await client.get("/v1/claims", headers=wrong)
            await client.get("/v1/claims", params={"entity_id": partner.keys["live"]})
            await client.post("/v1/claims", content=partner.keys["live"].encode())
            await client.get(f"/v1/{partner.keys['live']}")
        log = server.log.read_text()

    assert (made.status_code, link.status_code, refused.status_code) == (201, 201, 401)
    token = link.json()["connect_url"].rpartition("/")[2]
    secrets = [key.rpartition(".")[2] for key in partner.keys.values()] + [token]
    rows = list(rows_as_text(database_url))
    assert any(partner.partner_id in row for row in rows)
    assert "/v1/claims" in log
    for secret in secrets:
        assert secret not in log
        for form in (secret, secret.encode().hex()):
            assert not [row for row in rows if form in row]
