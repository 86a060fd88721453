"""The partner API's endpoints as tests call them and as the application routes them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from litestar.routes import HTTPRoute

from service.partner_api.endpoints import Endpoint as Described
from service.partner_api.gate import API_PATH
from tests.conformance import DESCRIBED, described
from tests.world import World


class Endpoint(NamedTuple):
    """How to call an endpoint: method, path under the base address, a valid body or query.

    `template` is the path with its parameters' names.
    """

    method: str
    path: str
    template: str
    body: dict[str, Any] | None = None
    query: dict[str, str] | None = None

    @property
    def url(self) -> str:
        """The path from the root."""
        return API_PATH + self.path

    def sent(self) -> dict[str, Any]:
        """Return the arguments for the client."""
        return {"json": self.body} if self.body is not None else {"params": self.query}


def _called(one: Described) -> Endpoint:
    operation = described()["paths"][one.path][one.method]
    required = [each for each in operation.get("parameters", ()) if each["required"]]
    given = {place: {} for place in ("path", "query")}
    for each in required:
        given[each["in"]][each["name"]] = each["example"]
    path = one.path.format(**given["path"])
    if one.body is None:
        return Endpoint(one.method.upper(), path, one.path, query=given["query"])
    examples = operation["requestBody"]["content"]["application/json"]["examples"]
    return Endpoint(one.method.upper(), path, one.path, examples["least"]["value"])


ENDPOINTS = {one.id: _called(one) for one in DESCRIBED}
"""Each endpoint by its id, with the document's own example, whose entity does not exist."""

WRITES = {name: one for name, one in ENDPOINTS.items() if one.method == "POST"}


def routed(world: World) -> Iterator[tuple[str | None, str, str]]:
    """Return (endpoint, method, path) of every handler; endpoint is None outside the API."""
    for route in world.routes:
        if isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                endpoint = handler.opt.get("endpoint")
                for method in handler.http_methods - {"OPTIONS"}:
                    yield endpoint and endpoint.id, str(method), route.path_format
