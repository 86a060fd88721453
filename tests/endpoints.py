"""The partner API's endpoints as the tests call them, and as the application routes them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from litestar.routes import HTTPRoute

from service.partner_api.gate import API_PATH
from tests.world import World, claim_body


class Endpoint(NamedTuple):
    """How an endpoint is called: method, path under the base address, a valid body or query."""

    method: str
    path: str
    body: dict[str, Any] | None = None
    query: dict[str, str] | None = None

    @property
    def url(self) -> str:
        """The path from the root."""
        return API_PATH + self.path

    def sent(self) -> dict[str, Any]:
        """Return what is sent, as the client takes it."""
        return {"json": self.body} if self.body is not None else {"params": self.query}


ENDPOINTS = {
    "create_claim": Endpoint("POST", "/claims", claim_body("ent_none")),
    "list_claims": Endpoint("GET", "/claims", query={"entity_id": "ent_none"}),
    "start_onboarding": Endpoint(
        "POST",
        "/onboardings",
        {"partner_user_id": "u", "company_name": "New", "user_email": "owner@example.com"},
    ),
    "mint_upload_url": Endpoint(
        "POST",
        "/documents/upload-url",
        {
            "entity_id": "ent_none",
            "partner_claim_id": "case-1",
            "filename": "invoice.pdf",
            "mime_type": "application/pdf",
        },
    ),
    "request_connection": Endpoint("POST", "/connect-requests", {"partner_user_id": "u"}),
}
"""Each endpoint by its name in the application."""

WRITES = {name: one for name, one in ENDPOINTS.items() if one.method == "POST"}


def routed(world: World) -> Iterator[tuple[str | None, str, str]]:
    """Return (endpoint, method, path) of every handler; no endpoint: not the partner API's."""
    app: Any = world.app._app  # noqa: SLF001 - nothing but the tests needs what is inside
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                for method in handler.http_methods - {"OPTIONS"}:
                    yield handler.opt.get("endpoint"), str(method), route.path
