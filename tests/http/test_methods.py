"""Methods that a path does not take."""

from service.partner_api.gate import API_PATH
from tests.world import World

ALLOWED = {
    "/onboardings": "POST",
    "/connect-requests": "POST",
    "/claims": "GET, POST",
    "/openapi.json": "GET, HEAD",
}


async def test_refused(world: World):
    """405 with the path's methods, without asking for a key."""
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


async def test_unknown_path(world: World):
    """A path that does not exist is 404 whatever the method."""
    for method in ("GET", "OPTIONS"):
        answer = await world.client.request(method, f"{API_PATH}/nothing")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), method
