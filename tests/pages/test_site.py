"""The installation that tests of pages visit."""

import pytest
from playwright.sync_api import Error


def test_a_page_that_fails_ends_its_test_at_once(site):
    """With the response, and what the server logged: not when what it lacks was waited for."""
    page = site.visitor()
    site.keep_apart(page)
    page.route("**/sign-in", lambda route: route.fulfill(status=500, body="Internal error"))

    def visit() -> None:
        page.goto("/sign-in")
        page.get_by_label("Email address").fill("somebody@example.com")

    # Which of them the driver says depends on whether the page was loading still.
    with pytest.raises(Error, match=r"closed|ERR_ABORTED"):
        visit()
    with pytest.raises(AssertionError, match="GET /sign-in: 500"):
        site.leave()
    site.leave()


def test_the_next_visitor_finds_nothing_of_the_one_before(site):
    """In the page of another test: no cookie, nothing stored, no size and nothing shown."""
    before = site.visitor()
    site.sign_in(before, site.mailbox(), "/account")
    before.evaluate("[sessionStorage, localStorage].forEach(one => one.setItem('a', 'b'))")
    before.set_viewport_size({"width": 390, "height": 800})
    site.leave()
    page = site.visitor()
    assert page is before
    assert (page.viewport_size, page.locator("*").count()) == ({"width": 1280, "height": 720}, 0)
    assert page.url == f"{site.url}/"
    assert page.context.cookies() == []
    page.goto("/account")
    assert page.url == f"{site.url}/sign-in?next=/account"
    assert page.evaluate("[sessionStorage.length, localStorage.length]") == [0, 0]


def test_a_page_that_is_kept_apart_or_has_options_is_nobody_elses(site):
    """Nor is one that is elsewhere, or that opened another one."""
    for options, path in (({}, "/"), ({}, "about:blank"), ({"locale": "de"}, "/")):
        page = site.visitor(**options)
        page.goto(path)
        if path == "/" and not options:
            site.keep_apart(page)
        site.leave()
        assert page.is_closed()
    page = site.visitor()
    page.goto("/")
    page.context.new_page()
    site.leave()
    assert page.is_closed()
