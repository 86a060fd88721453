"""The rate limit as partners meet it: contract section 8 and its readings."""

import asyncio
from functools import partial

import pytest

from service.app import web
from service.http.rate_limit.limiter import LOOK_UPS_PER_SECOND, RateLimiter
from tests.contract.refusals import refused
from tests.endpoints import ENDPOINTS
from tests.serving import served
from tests.world import STAFF, settings_for, world_on

pytestmark = pytest.mark.in_process("needs a limit of 120 and windows that stand still")

LIMIT = "X-RateLimit-Limit"
REMAINING = "X-RateLimit-Remaining"
RESET = "X-RateLimit-Reset"


@pytest.fixture
async def limited(database_url, tmp_path, monkeypatch):
    """Return a service with the contract's limit, whose windows do not move by themselves."""
    monkeypatch.setattr(web, "RateLimiter", partial(RateLimiter, monotonic=lambda: 1000.0))
    settings = settings_for(database_url, tmp_path, RATE_LIMIT_PER_MINUTE="120")
    async with world_on(settings, tmp_path, follow=False) as one:
        yield one


def call(partner, name, mode="live", **more):
    """Call an endpoint of the table."""
    one = ENDPOINTS[name]
    return partner.call(one.method, one.path, mode=mode, **(one.sent() | more))


async def test_every_authenticated_answer_has_rate_limit_headers(limited):
    """Refusals too; remaining counts down, and the reset is in epoch milliseconds."""
    partner = await limited.partner()
    before_ms = limited.service.clock().timestamp() * 1000
    answers = [await call(partner, name) for name in ENDPOINTS]
    answers.append(await partner.call("POST", "/claims", content=b"{"))
    answers.append(await partner.call("GET", "/claims"))
    after_ms = limited.service.clock().timestamp() * 1000

    assert {answer.headers[LIMIT] for answer in answers} == {"120"}
    counts = [int(answer.headers[REMAINING]) for answer in answers]
    assert counts == list(range(119, 119 - len(answers), -1))
    for answer in answers:
        assert before_ms <= int(answer.headers[RESET]) - 60_000 <= after_ms + 1
        assert "Retry-After" not in answer.headers


async def test_the_121st_request_is_refused(limited):
    """Contract 8: over all endpoints, keys and modes; validation failures count too."""
    partner = await limited.partner()
    names = list(ENDPOINTS)
    for nr in range(120):
        mode = ("live", "test")[nr % 2]
        answer = await call(partner, names[nr % len(names)], mode=mode)
        assert answer.status_code != 429
    for mode in ("live", "test"):
        for name in names:
            answer = await call(partner, name, mode=mode)
            refused(answer, "rate_limited")
            assert answer.headers["Retry-After"] == "60"
            assert (answer.headers[LIMIT], answer.headers[REMAINING]) == ("120", "0")
            assert RESET in answer.headers
    other = await limited.partner()
    assert (await call(other, names[0])).status_code != 429


async def test_a_refused_write_writes_nothing(limited):
    """The limit is checked before the body is read."""
    partner, entity = await limited.connected()
    await asyncio.gather(*(call(partner, "list_claims") for _ in range(119)))
    refused(await partner.claim(entity), "rate_limited")
    refused(await partner.call("POST", "/claims", content=b"{"), "rate_limited")

    access = limited.service.modes["live"].claim_list
    page = await access.page(
        partner.partner_id, entity, limit=1, page_token=None, partner_user_id=None
    )
    assert page.claims == []


async def test_failed_authentications_charge_nobody_and_are_throttled_by_address(limited):
    """Readings: 300 a minute from an address, then 429; the partner still has its 120."""
    partner = await limited.partner()
    bad = {"Authorization": f"Bearer {partner.keys['live'][:-1]}!"}
    async with limited.calling_from("192.0.2.1") as attacker:
        for _ in range(300):
            answer = await attacker.get("/v1/claims", headers=bad)
            refused(answer, "auth_bad_secret")
        answer = await attacker.get("/v1/claims", headers=bad)
        refused(answer, "rate_limited")
        assert answer.headers["Retry-After"] == "60"
    answers = await asyncio.gather(*(call(partner, "list_claims") for _ in range(121)))

    assert sorted(answer.status_code for answer in answers) == [404] * 120 + [429]


def key_of(partner, mode="live"):
    """Return the header with a partner's key."""
    return {"Authorization": f"Bearer {partner.keys[mode]}"}


async def test_no_key_is_locked_out_by_others_of_its_network(limited):
    """Beside an attacker, keys that were good before always work.

    A key that is used for the first time is looked up, unless there are too many of those; so is
    one that is good no longer. The network is an IPv4 address, or the 64 bits of an IPv6 one.
    """
    attacker, partner = await limited.partner(), await limited.partner()
    late, later = await limited.partner(), await limited.partner()
    known = [key_of(partner), key_of(partner, "test")]
    for key in known:
        refused(await limited.client.get("/v1/claims", headers=key), "validation_failed")
    bad = {"Authorization": f"Bearer {attacker.keys['live'][:-1]}!"}
    guessing, client = (limited.calling_from(f"2001:db8:0:1::{end}") for end in (1, 2))
    for _ in range(300):
        refused(await guessing.get("/v1/claims", headers=bad), "auth_bad_secret")
    refused(await guessing.get("/v1/claims", headers=bad), "rate_limited")

    refused(await client.get("/v1/claims", headers=key_of(late)), "validation_failed")
    for _ in range(LOOK_UPS_PER_SECOND):
        refused(await client.get("/v1/claims", headers=bad), "rate_limited")
    refused(await client.get("/v1/claims", headers=key_of(later)), "rate_limited")
    for key in (*known, key_of(late)):
        refused(await client.get("/v1/claims", headers=key), "validation_failed")
    await limited.service.partners.revoke(partner.partner_id, STAFF)
    refused(await client.get("/v1/claims", headers=known[0]), "rate_limited")
    neighbour = limited.calling_from("2001:db8:0:2::1")
    refused(await neighbour.get("/v1/claims", headers=bad), "auth_bad_secret")


async def test_a_missing_header_throttles_nobody(limited):
    """auth_missing and auth_partner_not_approved are not guesses."""
    for _ in range(310):
        answer = await limited.client.get("/v1/claims")
    refused(answer, "auth_missing")


async def test_of_300_requests_at_once_through_four_workers_120_pass(
    world, database_url, tmp_path, redis_server
):
    """All workers, keys and modes share one window per partner, in a real Redis.

    A worker gets some 75 of them, so none refuses by its own count. A thousand at once are in
    tests/http/test_rate_limit.py and tests/http/test_rate_limit_redis.py.
    """
    partner = await world.partner()
    settings = {"WORKERS": "4", "REDIS_URL": redis_server.url}
    with served(database_url, tmp_path, **settings) as server:
        keys = [partner.keys[("live", "test")[nr % 2]] for nr in range(300)]
        answers = await asyncio.gather(*(ask(server.port, key) for key in keys))

    statuses = [head.split()[1] for head in answers]
    assert (statuses.count(b"404"), statuses.count(b"429")) == (120, 180)
    for head, status in zip(answers, statuses, strict=True):
        assert (b"retry-after:" in head.lower()) is (status == b"429")


async def ask(port, key):
    """Return the head of the answer, on a new connection, so that no client pool slows it down."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = ("GET /v1/claims?entity_id=ent_none HTTP/1.1", "Host: localhost", "Connection: close")
    writer.write("\r\n".join((*lines, f"Authorization: Bearer {key}", "", "")).encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer.partition(b"\r\n\r\n")[0]
