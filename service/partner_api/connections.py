"""`POST /connect-requests` (contract 4.2)."""

from typing import Final

from litestar import Response
from litestar.handlers import HTTPRouteHandler

from service.connections.wire import ConnectRequest, ConnectResponse
from service.http.bodies import AnyRequest, caller_of, read_as
from service.http.responses import json_response
from service.http.scalars import given
from service.partner_api.endpoints import Endpoint, Modes, Success

REQUEST_CONNECTION: Final = Endpoint(
    id="request_connection",
    method="post",
    path="/connect-requests",
    tag="Businesses",
    summary="Ask a business that uses the service to connect",
    description=(
        "Mints a single-use link. Deliver it to your customer yourself; whoever is signed in "
        "for the business opens it and approves, and the entity is connected to you. The link "
        "is a credential: it works for one hour, and is kept nowhere in the clear.\n\n"
        "Not idempotent: each call mints a fresh link, and earlier ones go on working until "
        "they are used or expire. So retry only what cannot have minted one: a connection that "
        "was never made, 408, 429, and a 503 without `X-RateLimit-Limit`, which was refused before "
        "anything was done. After any other failure a link may exist that nobody holds; it "
        "expires within the hour, and asking for another is up to you.\n\n"
        "In test mode the link is the same each time for one `partner_user_id`, cannot be "
        "redeemed, and `expires_at` is null."
    ),
    body=ConnectRequest,
    successes=(Success(201, ConnectResponse, "A fresh link."),),
    repeat="unsafe",
)


def connection_handlers(modes: Modes) -> list[HTTPRouteHandler]:
    """Return the handlers of `/connect-requests`."""

    @REQUEST_CONNECTION.handler
    async def request_connection(request: AnyRequest) -> Response[bytes]:
        caller = caller_of(request)
        asked = await read_as(request, ConnectRequest)
        link = await modes[caller.mode].connections.issue_link(
            caller, asked.partner_user_id, given(asked.label) or None
        )
        answer = ConnectResponse(connect_url=link.connect_url, expires_at=link.expires_at)
        return json_response(answer, 201)

    return [request_connection]
