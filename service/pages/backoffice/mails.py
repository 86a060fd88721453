"""`/backoffice/mails`: every mail that the service sends, as it reads."""

from litestar import get

from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.mail.samples import SAMPLES
from service.pages.backoffice.frame import backoffice_page
from service.pages.site_map import Html, Page


def mails_router() -> OneOffRouter:
    """Return the router of the gallery of mails."""

    @get("/mails", opt={"page": Page("staff", "backoffice.nav.mails")})
    async def mails(request: AnyRequest) -> Html:
        """Show a sample of every mail, with its plain text and its HTML."""
        return backoffice_page(request, "mails.html", samples=SAMPLES)

    return OneOffRouter("/", route_handlers=[mails])
