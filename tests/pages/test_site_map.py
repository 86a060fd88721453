"""The site map: a page's declaration beside its handler is all that other code needs."""

import pytest
from litestar import Router, get, post

from service.pages.console.frame import CONSOLE
from service.pages.site_map import Page, RoutedPage, SiteMap


@get("/new", opt={"page": Page("member", "new.nav", "new.group")})
async def new() -> str:
    """Show the new page."""
    return ""


@get("/new/more", opt={"page": Page("member", "new.nav")})
async def more() -> str:
    """Show the second page."""
    return ""


@post("/new/more/change", opt={"page": Page("member", "new.nav")})
async def change() -> str:
    """Accept the form."""
    return ""


def test_a_page_is_in_the_map_and_in_the_navigation():
    """By its handler alone, with its purpose; the first page of an area is linked."""
    site_map = SiteMap([Router(CONSOLE, route_handlers=[new, more, change])])
    first = RoutedPage(
        "GET", f"{CONSOLE}/new", "member", "new.nav", "new.group", "Show the new page."
    )
    assert site_map.navigation(CONSOLE) == [first]
    assert site_map.navigation("/backoffice") == []
    purposes = [page.purpose for page in site_map.pages[1:]]
    assert purposes == ["Show the second page.", "Accept the form."]
    assert site_map.page_of_form("/console/ptn_a/new/more/change") == "/console/ptn_a/new/more"


def test_a_page_without_a_declaration_stops_the_start():
    """Nobody would know who may see it."""

    @get("/bare")
    async def bare() -> str:
        return ""

    with pytest.raises(KeyError):
        SiteMap([Router("/", route_handlers=[bare])])
