"""Methods that a path does not take."""

import pytest

from service.web.app import API_PATH
from tests.world import World

ALLOWED = {
    "/onboardings": "POST",
    "/connect-requests": "POST",
    "/claims": "GET, POST",
    "/openapi.json": "GET, HEAD",
}


@pytest.mark.parametrize("path", ALLOWED)
@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "FROBNICATE"])
async def test_refused(world: World, method: str, path: str):
    """405 with the path's methods, without asking for a key."""
    answer = await world.client.request(method, API_PATH + path)
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert answer.headers["allow"] == ALLOWED[path]


async def test_options_costs_nothing(world: World):
    """It is not charged to the partner whose key it carries."""
    partner = await world.partner()
    answer = await partner.call("OPTIONS", "/claims")
    assert "x-ratelimit-remaining" not in answer.headers


@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
async def test_unknown_path(world: World, method: str):
    """A path that does not exist is 404 whatever the method."""
    answer = await world.client.request(method, f"{API_PATH}/nothing")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
