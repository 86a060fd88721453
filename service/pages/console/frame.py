"""The frame of every page of the console: the partner, and the navigation."""

from typing import Final

from service.http.bodies import AnyRequest
from service.pages.gate import member_of
from service.pages.shell import framed_page
from service.pages.site_map import Html, site_map_of

CONSOLE: Final = "/console/{partner_id:str}"
"""The path of a partner's console."""

START: Final = "console.group.start"
ACTIVITY: Final = "console.group.activity"
ACCOUNT: Final = "console.group.account"
"""The groups of the navigation, which a page's `Page` names; within one, places follow the order of
the routers (`service/app/pages.py`)."""


def console_page(request: AnyRequest, template: str, status: int = 200, **context: object) -> Html:
    """Return a page that extends `console/layout.html`."""
    member = member_of(request)
    places = [
        item._replace(path=item.path.replace(CONSOLE, member.path))
        for item in site_map_of(request).navigation(CONSOLE)
        if item.who != "approved" or member.status == "approved"
    ]
    return framed_page(
        request,
        f"console/{template}",
        status,
        "console.nav.label",
        places,
        **{"member": member, **context},
    )
