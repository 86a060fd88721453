"""How many round trips to PostgreSQL an endpoint makes, counted by a proxy; nothing is timed."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx

from service.app.bootstrap import Service
from service.app.settings import SERVE, Settings
from service.app.web import web_app
from service.operations.metrics import Metrics
from tests.bench.stack import Stack
from tests.database_proxy import DatabaseProxy, proxied
from tests.world import claim_body


def round_trips(stack: Stack, say: Callable[[str], None]) -> dict[str, Any]:
    """Count them with statements already prepared and without background tasks."""
    say("round_trips")
    return asyncio.run(_count(stack, stack.clone("round_trips")))


async def _count(stack: Stack, database: str) -> dict[str, Any]:
    customer = stack.customers[0]
    async with proxied(database) as (proxy, url):
        environment = stack.environment(url, POOL_SIZE="1")
        del environment["CLAIM_LEDGER_REDIS_URL"]  # what is counted goes to PostgreSQL alone
        settings = Settings.from_environment(environment, require=SERVE)
        service = Service(settings)
        async with service.opened():
            asgi = httpx.ASGITransport(web_app(service, Metrics(), None))
            headers = {"Authorization": f"Bearer {customer.token}"}
            async with httpx.AsyncClient(
                transport=asgi, base_url="http://localhost/v1", headers=headers
            ) as client:
                return await _count_each(proxy, client, customer.entity_id)


async def _count_each(
    proxy: DatabaseProxy, client: httpx.AsyncClient, entity_id: str
) -> dict[str, Any]:
    counted: dict[str, Any] = {}

    async def count(name: str, method: str, path: str, **more: object) -> None:
        for turn in ("to prepare", "to count"):
            proxy.statements.clear()
            answer = await client.request(method, path, **_turn(more, turn))
            if answer.is_error:
                raise RuntimeError(f"{name}: {answer.text}")
        counted[name] = {
            "round_trips": len(proxy.statements),
            "statements": [_title(statement) for statement in proxy.statements],
        }

    claim = claim_body(entity_id, "case {turn}", message="Unpaid.")
    onboarding = {
        "partner_user_id": "user {turn}",
        "company_name": "Example Ltd",
        "user_email": "person@example.org",
    }
    await count("POST /claims", "POST", "/claims", json=claim)
    await count("POST /claims, replay", "POST", "/claims", json=claim_body(entity_id, "replayed"))
    await count("GET /claims", "GET", "/claims", params={"entity_id": entity_id})
    await count("POST /connect-requests", "POST", "/connect-requests", json={
        "partner_user_id": "user"})  # fmt: skip
    await count("POST /onboardings", "POST", "/onboardings", json=onboarding)
    return counted


def _turn(more: dict[str, Any], turn: str) -> dict[str, Any]:
    """Return the request of one turn: each turn creates something different."""
    return {
        kind: {
            name: value.replace("{turn}", turn) if isinstance(value, str) else value
            for name, value in content.items()
        }
        for kind, content in more.items()
    }


def _title(statement: str) -> str:
    """Return the first line of a statement, which describes it."""
    return statement.strip().splitlines()[0].removeprefix("-- ")
