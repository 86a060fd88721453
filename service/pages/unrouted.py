"""What no route takes: a page for people, who keep their navigation; the envelope for programs."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from litestar import Response
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Receive, Scope, Send

from service.core.errors import Refusal
from service.core.visitors import visited_by
from service.http import responses
from service.http.bodies import AnyRequest
from service.http.client_address import network_of
from service.ledger.database import LedgerError
from service.ledger.encryption import KeyUnknown
from service.pages.home import Landings
from service.pages.shell import CUSTOMERS_AREAS, TEAMS_AREA, on_http_exception
from service.pages.site_map import Html, RoutedPage
from service.pages.visit import Visits, person_of
from service.partner_api.gate import API_PATH

NOT_FOUND = 404


@dataclass(frozen=True)
class Unrouted:
    """The exception handler of whatever is not routed, which comes before any middleware of pages.

    `landings` is None where the back office has the origin for itself.
    """

    visits: Visits
    landings: Landings | None
    no_such_path: str | None = None
    """What is said of a path under the API's address; it names those that there are."""

    def __call__(self, request: AnyRequest, error: HTTPException) -> Html:
        """Return a page where a browser navigates, by the `text/html` that it names.

        The API has the envelope whoever asks.
        """
        of_api = f"{request.url.path}/".startswith(f"{API_PATH}/")
        if of_api and error.status_code == NOT_FOUND:
            return responses.refusal_response(request, Refusal("not_found", self.no_such_path))
        if of_api or "text/html" not in request.headers.get("accept", ""):
            return responses.on_http_exception(request, error)
        return _LatePage(self, request, error)

    async def recognise(self, request: AnyRequest) -> None:
        """Put into the request's state who asks, and which areas they have."""
        network = visited_by(f"network {network_of(request.scope)}")
        with network, suppress(LedgerError, KeyUnknown, Refusal):  # shown to nobody, then
            await self.visits.recognise(request.scope)
            request.scope["state"]["areas"] = await self._areas(request)

    async def _areas(self, request: AnyRequest) -> Sequence[RoutedPage]:
        person = person_of(request)
        if self.landings is None:
            return (TEAMS_AREA,)
        is_staff = person is not None and (await self.landings.of(person)).is_staff
        return (*CUSTOMERS_AREAS, TEAMS_AREA) if is_staff else CUSTOMERS_AREAS


class _LatePage(Response[bytes]):
    """A page that is made when it is sent: handlers of exceptions cannot look anything up."""

    def __init__(self, unrouted: Unrouted, request: AnyRequest, error: HTTPException) -> None:
        super().__init__(b"")
        self.unrouted, self.request, self.error = unrouted, request, error

    def to_asgi_response(self, *_given: object, **_named: object) -> ASGIApp:  # pyright: ignore[reportIncompatibleMethodOverride] - any application will do
        """Return what looks the visitor up, and sends the page."""
        return self._send

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.unrouted.recognise(self.request)
        page = on_http_exception(self.request, self.error)
        await page.to_asgi_response(None, self.request)(scope, receive, send)
