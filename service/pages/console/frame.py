"""The frame of every page of the console: the partner, and the navigation."""

from typing import Final

from service.http.bodies import AnyRequest
from service.pages.gate import member_of
from service.pages.shell import Frame, framed_page
from service.pages.site_map import Html, site_map_of

CONSOLE: Final = "/console/{partner_id:str}"
"""The path of a partner's console."""

START: Final = "console.group.start"
ACTIVITY: Final = "console.group.activity"
ACCOUNT: Final = "console.group.account"
"""The groups of the navigation, which a page's `Page` names; within one, places follow the order of
the routers (`service/app/pages.py`)."""


def console_frame(request: AnyRequest) -> Frame | None:
    """Return the navigation of a partner's console; None for whom the guard did not let in."""
    if "member" not in request.scope["state"]:
        return None
    member = member_of(request)
    places = [
        item._replace(path=item.path.replace(CONSOLE, member.path))
        for item in site_map_of(request).navigation(CONSOLE)
        if item.who != "approved" or member.status == "approved"
    ]
    return Frame("console.nav.label", places)


def console_page(request: AnyRequest, template: str, status: int = 200, **context: object) -> Html:
    """Return a page that extends `console/layout.html`."""
    frame = console_frame(request)
    assert frame is not None  # noqa: S101 - its guard looks the member up
    shown = {"member": member_of(request), **context}
    return framed_page(request, f"console/{template}", status, frame, **shown)
