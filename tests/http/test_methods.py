"""Methods that a path does not support."""

from service.partner_api.gate import API_PATH
from tests.world import World

ALLOWED = {
    "/onboardings": "POST",
    "/connect-requests": "POST",
    "/claims": "GET, POST",
    "/openapi.json": "GET, HEAD",
}


async def test_an_unsupported_method_is_405(world: World):
    """The answer lists the path's methods, and needs no key."""
    for path, allowed in ALLOWED.items():
        for method in ("OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "FROBNICATE"):
            answer = await world.client.request(method, API_PATH + path)
            assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
            assert answer.headers["allow"] == allowed, (method, path)


async def test_options_costs_nothing(world: World):
    """It is not charged to the partner whose key it carries."""
    partner = await world.partner()
    answer = await partner.call("OPTIONS", "/claims")
    assert "x-ratelimit-remaining" not in answer.headers


async def test_an_unknown_path_is_404(world: World):
    """Whatever the method."""
    for method in ("GET", "OPTIONS"):
        answer = await world.client.request(method, f"{API_PATH}/nothing")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), method
