"""`POST /connect-requests` (contract 4.2)."""

from collections.abc import Mapping

from litestar import Response, Router, post

from service.connections.commands import ConnectionCommands
from service.connections.wire import ConnectRequest, ConnectResponse
from service.facts.caller import Mode
from service.http.answers import json_answer
from service.http.bodies import AnyRequest, caller_of, read_body
from service.http.decoding import decode
from service.http.scalars import given


def connections_router(commands: Mapping[Mode, ConnectionCommands]) -> Router:
    """Return the router of `/connect-requests`."""

    @post("/connect-requests", opt={"endpoint": "request_connection"})
    async def request_connection(request: AnyRequest) -> Response[bytes]:
        caller = caller_of(request)
        body = await read_body(request)
        asked = decode(body, request.headers.get("content-type"), ConnectRequest)
        link = await commands[caller.mode].issue_link(
            caller, asked.partner_user_id, given(asked.label) or None
        )
        answer = ConnectResponse(connect_url=link.connect_url, expires_at=link.expires_at)
        return json_answer(answer, 201, {"Cache-Control": "no-store"})

    return Router("/", route_handlers=[request_connection])
