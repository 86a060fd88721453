"""Chromium as the system has it, and an installation for it to visit."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.pages.site import Site, site_on

# Without its window, which is drawn anew for each visitor, Chromium starts three times as fast.
INSTALLED = [Path("/usr/bin/chromium-headless-shell"), Path("/usr/bin/chromium")]
CHROMIUM = next((path for path in INSTALLED if path.exists()), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Answer the browser.

    Of a module, not of the session: its driver runs an event loop in this thread, and while it
    does no `async` test can. So a module visits pages in the browser, or has tests that are
    `async`, never both.
    """
    if CHROMIUM is None:
        pytest.skip("chromium is not installed (apt install chromium-headless-shell, or chromium)")
    with sync_playwright() as playwright:
        # No sandbox: it needs rights that a container's root lacks; it visits nothing but us.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def site(module_database_url, tmp_path_factory, browser) -> Iterator[Site]:
    """Answer an installation that the tests of a module share: each has addresses of its own."""
    with site_on(module_database_url, tmp_path_factory.mktemp("site"), browser) as one:
        yield one


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a module that visit one installation in one process."""
    for item in items:
        if "site" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


@pytest.fixture(autouse=True)
def visitors_leave(request) -> Iterator[None]:
    """Close what a test opened in the browser."""
    yield
    if "site" in request.fixturenames:
        request.getfixturevalue("site").leave()
