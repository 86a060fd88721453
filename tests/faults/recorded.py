"""Recording what a world is asked and answers while something fails, and checking it afterwards."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx

from tests.histories import History, faults
from tests.patience import eventually
from tests.world import World


@asynccontextmanager
async def recorded(world: World) -> AsyncGenerator[History, None]:
    """Record a world's operations; then list every claim, and check the whole history."""
    history = world.history = History()
    yield history
    for (_, entity_id), key in list(history.keys.items()):
        await _list_all(world.client, entity_id, key)
    assert faults(history.operations) == []


async def _list_all(client: httpx.AsyncClient, entity_id: str, key: str) -> None:
    query, token = {"entity_id": entity_id, "limit": "200"}, ""
    while token is not None:
        asked = query | ({"page_token": token} if token else {})

        async def answered(asked: dict[str, str] = asked) -> httpx.Response | None:
            headers = {"Authorization": key}
            answer = await client.get("/v1/claims", params=asked, headers=headers)
            return None if answer.status_code == 503 else answer

        answer = await eventually(answered, look=0.1)
        token = answer.json().get("next_page_token")
