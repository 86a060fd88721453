"""The site map: what a page declares beside its handler is all that the rest needs to know."""

import pytest
from litestar import Router, get, post

from service.pages.console.frame import CONSOLE
from service.pages.site_map import Page, RoutedPage, SiteMap


@get("/new", opt={"page": Page("member", "new.nav")})
async def new() -> str:
    """Show something new."""
    return ""


@get("/new/more", opt={"page": Page("member", "new.nav")})
async def more() -> str:
    """Show more of it."""
    return ""


@post("/new/more/change", opt={"page": Page("member", "new.nav")})
async def change() -> str:
    """Change it."""
    return ""


def test_a_page_is_in_the_map_and_in_the_navigation():
    """With its purpose, by its handler alone; the first page of a place is the one linked."""
    site_map = SiteMap([Router(CONSOLE, route_handlers=[new, more, change])])
    first = RoutedPage("GET", f"{CONSOLE}/new", "member", "new.nav", "Show something new.")
    assert site_map.navigation(CONSOLE) == [first]
    assert site_map.navigation("/backoffice") == []
    assert [page.purpose for page in site_map.pages[1:]] == ["Show more of it.", "Change it."]
    assert site_map.page_of_form("/console/ptn_a/new/more/change") == "/console/ptn_a/new/more"


def test_a_page_that_declares_nothing_is_a_fault():
    """The application does not start with a page of which nobody knows who may see it."""

    @get("/bare")
    async def bare() -> str:
        return ""

    with pytest.raises(KeyError):
        SiteMap([Router("/", route_handlers=[bare])])
