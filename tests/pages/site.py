"""A served installation, partners and customers around it, and their browsers."""

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.policy import default
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import httpx
import psycopg
from playwright.sync_api import Browser, BrowserContext, Error, Page, Response, ViewportSize

from service.app.bootstrap import Service
from service.pages.visit import COOKIE
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS, until
from tests.serving import served
from tests.sessions import session_of
from tests.world import STAFF, settings_for

T = TypeVar("T")
LINK = re.compile(r"https?://\S+")
NEW: ViewportSize = {"width": 1280, "height": 720}
"""How large a page is that was given no other size."""
EMPTY = """() => {
    window.stop()
    document.replaceChildren()
    history.replaceState(null, '', '/')
    sessionStorage.clear()
    localStorage.clear()
}"""


class Team:
    """The service's parts in a separate thread, because the browser's driver owns this loop."""

    def __init__(self, database_url: str, mail_dir: Path, url: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        settings = settings_for(database_url, mail_dir, PUBLIC_URL=url)
        self.service = Service(settings, deadline_seconds=PATIENCE_SECONDS)
        self._opened = self.service.opened()
        self._run(self._opened.__aenter__())

    def do(self, act: Callable[[Service], Awaitable[T]]) -> T:
        """Run commands as the team, in this process."""

        async def acted() -> T:
            return await act(self.service)

        return self._run(acted())

    def end(self) -> None:
        """Close the pools and end the thread."""
        self._run(self._opened.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


@dataclass
class Site:
    """`url` is the origin; `browser` visits it; `log` has the server's output."""

    url: str
    log: Path
    database_url: str
    mail_dir: Path
    browser: Browser
    team: Team
    visiting: list[Page] = field(default_factory=list[Page])
    apart: list[BrowserContext] = field(default_factory=list[BrowserContext])
    """Profiles of one test alone."""
    free: list[Page] = field(default_factory=list[Page])
    """Pages, in profiles of their own, that the next visitors have."""
    failed: list[str] = field(default_factory=list[str])
    """Responses that no test of a page expects: the server's own errors."""
    looked: int = 0
    """How many bytes of the log are of earlier tests."""

    def do(self, act: Callable[[Service], Awaitable[T]]) -> T:
        """Run commands as the team does, in this process."""
        return self.team.do(act)

    def mailbox(self) -> str:
        """Return an email address that is not in use yet."""
        return f"{uuid4().hex}@example.com"

    def partner(self, name: str = "Partner") -> tuple[str, str]:
        """Return an approved partner's id and live key."""

        async def act(service: Service) -> tuple[str, str]:
            partner_id = await service.partners.add(name, "partner@example.com", STAFF)
            await service.partners.approve(partner_id, STAFF)
            issued = await service.partners.issue_key(partner_id, "live", STAFF)
            return partner_id, issued.token

        return self.do(act)

    def entity(self, email: str, name: str = "Business", *, another: bool = False) -> str:
        """Return an established business; `another`: one with an address that has one already."""
        return self.do(
            lambda service: service.modes["live"].entities.add(
                name, email, None, STAFF, another=another
            )
        )

    def api(self, key: str, method: str, path: str, **more: Any) -> httpx.Response:
        """Call the partner API."""
        headers = {"Authorization": f"Bearer {key}"}
        return httpx.request(
            method,
            f"{self.url}/v1{path}",
            headers=headers,
            timeout=PATIENCE_SECONDS,
            **more,
            verify=NO_TLS,
        )

    def logged(self, request_id: str) -> None:
        """Wait until a call is logged, which takes a second or two."""
        noted = "select 1 from {}.requests where request_id = %(id)s"
        either = " union all ".join(noted.format(mode) for mode in ("live", "test"))
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            until(lambda: connection.execute(either, {"id": request_id}).fetchone(), look=0.1)

    def mailed_link(self, to: str, kind: str) -> str:
        """Return the link in the newest mail to an address; its path begins with `kind`."""
        return until(lambda: self._newest_link(to, kind), lambda: f"{kind} to {to}", look=0.05)

    def _newest_link(self, to: str, kind: str) -> str | None:
        for file in sorted(self.mail_dir.glob("*.eml"), key=_age, reverse=True):
            raw = file.read_bytes()
            if to.encode() not in raw:  # to take a mail apart lasts milliseconds
                continue
            message = message_from_bytes(raw, policy=default)
            link = LINK.search(message.get_body(("plain",)).get_content())
            if to in str(message["To"]) and link and f"/{kind}/" in link[0]:
                file.unlink()
                return link[0]
        return None

    def visitor(self, **options: Any) -> Page:
        """Return a page in a browser profile that has nothing in it; the test's end takes it back.

        Without options, other tests have had it and will again, because a new one takes a sixth of
        a second: `keep_apart` what has more done to it than `_emptied` undoes.
        """
        if not self.visiting:
            self.looked = self.log.stat().st_size
        page = self.free.pop() if self.free and not options else self._new_page(**options)
        self.visiting.append(page)
        if options:
            self.keep_apart(page)
        return page

    def keep_apart(self, page: Page) -> None:
        """Let no other test have this page, which gets a listener, a route or a permission, say."""
        self.apart.append(page.context)

    def leave(self) -> None:
        """Take back what visitors have; raise AssertionError if the server failed."""
        while self.visiting:
            page = self.visiting.pop()
            if page.context not in self.apart and _emptied(page, self.url):
                self.free.append(page)
            else:
                page.context.close()
        self.apart.clear()
        failed, self.failed = self.failed, []
        assert not failed, "\n".join(failed)

    def _new_page(self, **options: Any) -> Page:
        context = self.browser.new_context(base_url=self.url, **options)
        context.set_default_timeout(PATIENCE_SECONDS * 1000)
        context.on("response", self._look)
        return context.new_page()

    def _look(self, response: Response) -> None:
        """Close a profile whose page fails: its test would wait for what the page does not have."""
        if response.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            return
        path = response.url.removeprefix(self.url)
        text = self.log.read_bytes()[self.looked :].decode(errors="replace")
        logged = re.findall(r'^.*"level": ?"error".*$', text, re.MULTILINE)
        answered = f"{response.request.method} {path}: {response.status}"
        self.failed.append("\n".join([answered, *logged[-1:]]))
        response.frame.page.context.close()

    def sign_in(self, page: Page, email: str, path: str = "", *, by_passkey: bool = True) -> None:
        """Begin a session for a visitor without a mail, and open a page if one is given.

        Links by mail are limited by address and by network; tests that are not about them would
        meet the limits together.
        """

        async def begin(service: Service) -> str:
            return (await session_of(service, email, by_passkey=by_passkey)).token

        self.keep(page, COOKIE, self.do(begin))
        if path:
            page.goto(path)

    def keep(self, page: Page, name: str, value: str) -> None:
        """Set a cookie of ours in a visitor's browser."""
        cookie = {"name": name, "value": value, "url": self.url.replace("http", "https")}
        page.context.add_cookies([{**cookie, "secure": True, "httpOnly": True, "sameSite": "Lax"}])

    def sign_in_by_mail(self, page: Page, email: str) -> None:
        """Sign a visitor in with the link in the mail."""
        page.goto("/sign-in")
        page.get_by_label("Email address").fill(email)
        page.get_by_role("button", name="Send link").click()
        page.goto(self.mailed_link(email, "sign-in"))
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("/account")


@contextmanager
def site_on(database_url: str, directory: Path, browser: Browser) -> Iterator[Site]:
    """Serve an installation until the block ends."""
    mail_dir = directory / "mail"
    mail_dir.mkdir()
    with served(database_url, directory, host="localhost", RATE_LIMIT_PER_MINUTE="100000") as one:
        team = Team(database_url, mail_dir, one.url)
        try:
            yield Site(one.url, one.log, database_url, mail_dir, browser, team)
        finally:
            team.end()


def _emptied(page: Page, url: str) -> bool:
    """Return whether a page and its profile have nothing of a test any more but what is cached.

    It stays where it is: for a blank page the browser would start another process.
    """
    if not page.url.startswith(url) or len(page.context.pages) > 1:
        return False
    try:
        page.evaluate(EMPTY)
        page.mouse.move(0, 0)
        page.context.clear_cookies()
        if page.viewport_size != NEW:
            page.set_viewport_size(NEW)
    except Error:  # where it was on its way to another page, for instance
        return False
    return True


def _age(file: Path) -> float:
    return file.stat().st_mtime
