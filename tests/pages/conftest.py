"""Chromium as the system has it, and an installation for it to visit."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.pages.chromium import CHROMIUM
from tests.pages.site import Site, site_on
from tests.patience import PATIENCE_SECONDS

expect.set_options(timeout=PATIENCE_SECONDS * 1000)

# Without its window, which is drawn anew for each visitor, Chromium starts three times as fast.


_started: list[tuple[ExitStack, Browser]] = []
"""The browser that runs, if one does, and what ends with it."""


@pytest.fixture(scope="module")
def browser() -> Browser:
    """Return the browser; it goes on through modules that need it and follow each other.

    A module visits pages in the browser, or has tests that are `async`, never both: its driver
    runs an event loop in this thread, and while it does no `async` test can.
    """
    if CHROMIUM is None:
        pytest.skip("chromium is not installed (apt install chromium-headless-shell, or chromium)")
    if not _started:
        ends = ExitStack()
        playwright = ends.enter_context(sync_playwright())
        # No sandbox: it needs rights that a container's root lacks; it visits nothing but us.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        ends.callback(browser.close)
        _started.append((ends, browser))
    return _started[0][1]


@pytest.fixture(scope="module")
def site(module_database_url, tmp_path_factory, browser) -> Iterator[Site]:
    """Return an installation that the tests of a module share: each has addresses of its own."""
    with site_on(module_database_url, tmp_path_factory.mktemp("site"), browser) as one:
        yield one


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what needs the browser, so that it is started but once or twice."""
    items.sort(key=lambda item: not _visits(item))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """End the browser after the last test that needs it."""
    if nextitem is None or not _visits(nextitem):
        while _started:
            _started.pop()[0].close()


def _visits(item: pytest.Item) -> bool:
    return "browser" in getattr(item, "fixturenames", ())


@pytest.fixture(autouse=True)
def visitors_leave(request) -> Iterator[None]:
    """Close what a test opened in the browser."""
    yield
    if "site" in request.fixturenames:
        request.getfixturevalue("site").leave()
