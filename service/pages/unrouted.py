"""What no route takes: a page for a person who mistyped an address, the envelope for programs."""

from litestar import Response
from litestar.exceptions import HTTPException

from service.http import responses
from service.http.bodies import AnyRequest
from service.pages import shell
from service.partner_api.gate import API_PATH


def on_unrouted(request: AnyRequest, error: HTTPException) -> Response[bytes]:
    """Return what the framework refused, as the one who asks can read it.

    Browsers name `text/html` where they navigate. The API has the envelope whoever asks.
    """
    of_api = f"{request.url.path}/".startswith(f"{API_PATH}/")
    if not of_api and "text/html" in request.headers.get("accept", ""):
        return shell.on_http_exception(request, error)
    return responses.on_http_exception(request, error)
