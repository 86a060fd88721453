"""Chromium as the system has it, and an installation for it to visit."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
import pytest_asyncio
from playwright.sync_api import Browser, expect, sync_playwright

from tests.databases import clone
from tests.pages.chromium import CHROMIUM
from tests.pages.filled import Filled
from tests.pages.site import Site, site_on
from tests.pages.visitor import Visitor
from tests.patience import PATIENCE_SECONDS
from tests.world import STAFF, World, settings_for, world_on

expect.set_options(timeout=1000 * PATIENCE_SECONDS)


@dataclass
class Visiting:
    """The browser and its installation, which run from the first visiting test to the last."""

    ends: ExitStack
    chromium: Browser
    site: Site | None = None
    filled: Filled | None = None


_running: list[Visiting] = []
"""One, or none."""


@pytest.fixture(scope="module")
def browser() -> Visiting:
    """Return the browser, started if necessary.

    A module visits pages in the browser, or has tests that are `async`, never both: its driver
    runs an event loop in this thread, and while it does no `async` test can.
    """
    if CHROMIUM is None:
        pytest.skip("chromium is not installed (apt install chromium-headless-shell, or chromium)")
    if not _running:
        ends = ExitStack()
        playwright = ends.enter_context(sync_playwright())
        # No sandbox: it needs rights that a container's root lacks; it visits nothing but us. One
        # process a profile: by default the blank page that it opens with has another one to itself.
        # No optimizing compilers: no page lives long enough to be worth their time.
        chromium = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=[
                "--no-sandbox",
                "--renderer-process-limit=1",
                "--js-flags=--no-opt --no-maglev",
            ],
            timeout=1000 * PATIENCE_SECONDS,
        )
        ends.callback(chromium.close)
        _running.append(Visiting(ends, chromium))
    return _running[0]


@pytest.fixture(scope="module")
def site(browser, postgres_url, template, tmp_path_factory) -> Site:
    """Return an installation shared by visiting tests: each test has addresses of its own."""
    if browser.site is None:
        directory = tmp_path_factory.mktemp("site")
        database_url = clone(postgres_url, template)  # of its own: a browser may start again
        visited = site_on(database_url, directory, browser.chromium)
        browser.site = browser.ends.enter_context(visited)
    return browser.site


@pytest.fixture(scope="module")
def filled(browser, site) -> Filled:
    """Return the installation with something on every page."""
    browser.filled = browser.filled or Filled(site)
    return browser.filled


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def module_world(
    request, module_database_url, tmp_path_factory
) -> AsyncGenerator[World, None]:
    """Return a world for a module whose tests have people of their own in it.

    The application alone takes a fifth of a second to make, so that a test's own one is for what is
    about all that there is, or changes it. The module says that its loop is its tests', and is
    marked `followed` if its log has to be.
    """
    follow = request.node.get_closest_marker("followed") is not None
    mail_dir = tmp_path_factory.mktemp("module_world") / "mail"
    settings = settings_for(module_database_url, mail_dir)
    async with world_on(settings, mail_dir, follow=follow) as one:
        yield one


@pytest.fixture
async def staff(world) -> Visitor:
    """Return a member of the team."""
    await world.service.staff.add("team@example.com", STAFF)
    return await Visitor(world).sign_in("team@example.com")


@pytest.fixture(autouse=True)
def visitors_leave(request) -> Iterator[None]:
    """Take back the pages that a test had in the browser."""
    yield
    if "site" in request.fixturenames:
        request.getfixturevalue("site").leave()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run tests with the browser first, so that it is started once or twice."""
    items.sort(key=lambda item: not _visits(item))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """End the browser after the last test that needs it."""
    if nextitem is None or not _visits(nextitem):
        while _running:
            _running.pop().ends.close()


def _visits(item: pytest.Item) -> bool:
    return "browser" in getattr(item, "fixturenames", ())
