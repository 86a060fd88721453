"""The installation that tests of pages visit."""

import pytest
from playwright.sync_api import Error


def test_a_page_that_fails_ends_its_test_at_once(site):
    """With the response, and what the server logged: not when what it lacks was waited for."""
    page = site.visitor()
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
