"""Authentication: who is admitted, and how everybody else is refused."""

import hmac
from collections.abc import AsyncGenerator
from types import SimpleNamespace

import httpx
import pytest
import pytest_asyncio

from service.partner_api import authentication
from service.partner_api.gate import API_PATH
from service.partners import keys as partner_keys
from tests.contract.auth_cases import (
    CREDENTIALS,
    NOT_IN_HTTP,
    STATES,
    Keys,
    expected,
    header_of,
    keys_of,
)
from tests.contract.refusals import refused
from tests.endpoints import ENDPOINTS, routed
from tests.tables import every_row
from tests.topology import RemoteWorld
from tests.world import STAFF, World

pytestmark = pytest.mark.asyncio(loop_scope="module")

OPEN_PATHS = {f"{API_PATH}/openapi.json"}
"""Under the base address, and read without a key."""
HITS_AND_MISSES = (
    "live key",
    "wrong secret",
    "wrong key id",
    "key of another partner",
    "revoked key",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def partners(shared: World) -> AsyncGenerator[dict[str, Keys], None]:
    """Return a partner in each state."""
    yield {state: await keys_of(shared, state) for state in STATES}


async def ask(client: httpx.AsyncClient, endpoint: str, header: str | bytes | None):
    """Call an endpoint with an Authorization header."""
    one = ENDPOINTS[endpoint]
    headers = {} if header is None else {"Authorization": header}
    return await client.request(one.method, one.url, headers=headers, **one.sent())


@pytest.mark.in_process("walks the application's routes")
async def test_every_endpoint_has_an_authentication_test(shared):
    """The table that the tests call has every handler of the partner API under its path."""
    found = {name: (method, path) for name, method, path in routed(shared) if name}

    assert found == {name: (one.method, API_PATH + one.template) for name, one in ENDPOINTS.items()}


@pytest.mark.in_process("walks the application's routes")
async def test_no_other_path_bypasses_authentication(shared):
    """Every other path under the base address is known to be public."""
    bare = {path for name, _, path in routed(shared) if not name and path.startswith(API_PATH)}

    assert bare <= OPEN_PATHS


@pytest.mark.parametrize("state", STATES)
async def test_each_credential_gets_its_code(shared, partners, state):
    """Contract 5.5 and the readings: code and status of every combination."""
    left_out = NOT_IN_HTTP if isinstance(shared, RemoteWorld) else set()
    sent = [credential for credential in CREDENTIALS if credential not in left_out]
    with every_row() as row:
        for number, endpoint in enumerate(ENDPOINTS):
            # Each from a network of its own: 300 failures would block it.
            network = f"2001:db8:{STATES.index(state) + 1}:{number}"
            async with shared.calling_from(f"{network}::1") as client:
                for credential in sent:
                    with row(credential, endpoint):
                        answer = await ask(client, endpoint, header_of(credential, partners[state]))
                        check(answer, expected(state, credential))


async def test_of_two_headers_none_is_chosen(shared, partners):
    """A proxy may have looked at the other one, whichever comes first."""
    one, key = ENDPOINTS["list_claims"], f"Bearer {partners['approved'].live}"
    pending = f"Bearer {partners['pending'].live}"
    async with shared.calling_from("2001:db8:99::1") as client:
        for other in (key, pending, "Basic x", ""):
            for order in ((key, other), (other, key)):
                headers = [("Authorization", value) for value in order]
                answer = await client.request(one.method, one.url, headers=headers)
                refused(answer, "auth_invalid_format")


def check(answer: httpx.Response, code: str | None) -> None:
    """Check an answer against the expected code; None: admitted."""
    if code is None:
        assert answer.status_code not in {401, 403}
        assert "X-RateLimit-Remaining" in answer.headers
        return
    refused(answer, code)
    challenge = "Bearer" if answer.status_code == 401 else None
    assert answer.headers.get("WWW-Authenticate") == challenge
    assert "X-RateLimit-Remaining" not in answer.headers


@pytest.mark.in_process("counts hashes and comparisons")
async def test_unknown_keys_cost_as_much_as_known_ones(shared, partners, monkeypatch):
    """One keyed hash and one comparison either way, so that timing reveals nothing."""
    work: list[str] = []

    def hashed(pepper: bytes, token: partner_keys.Token, version: int) -> bytes:
        work.append("hash")
        return partner_keys.hash_secret(pepper, token, version)

    def compared(one: bytes, other: bytes) -> bool:
        work.append(f"compare {len(one)} with {len(other)}")
        return hmac.compare_digest(one, other)

    monkeypatch.setattr(authentication, "hash_secret", hashed)
    # Its own alone: what follows the log in this process compares MACs meanwhile.
    monkeypatch.setattr(authentication, "hmac", SimpleNamespace(compare_digest=compared))
    for credential in HITS_AND_MISSES:
        work.clear()
        await ask(shared.client, "list_claims", header_of(credential, partners["approved"]))
        assert work == ["hash", "compare 32 with 32"], credential


async def test_a_revocation_holds_from_the_next_request(shared):
    """Contract 5.3: no cached key outlives its revocation."""
    keys = await keys_of(shared, "approved")
    commands = shared.service.partners
    before = await ask(shared.client, "list_claims", f"Bearer {keys.live}")
    await commands.revoke_key(keys.partner_id, keys.key_id, STAFF)
    after = await ask(shared.client, "list_claims", f"Bearer {keys.live}")
    other = await ask(shared.client, "list_claims", f"Bearer {keys.test}")

    assert (before.json()["code"], after.json()["code"]) == ("entity_not_found", "auth_revoked")
    assert other.json()["code"] == "entity_not_found"
