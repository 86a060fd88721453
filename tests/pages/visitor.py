"""A visitor without a browser, who keeps cookies and posts forms as our pages do."""

import html
import json
import re
from typing import Any
from urllib.parse import urlsplit

import httpx

from service.app.bootstrap import Service
from service.app.pages import pages
from service.pages.site_map import SiteMap
from service.pages.visit import COOKIE, CSRF_FIELD, VERSION_FIELD, form_token
from tests.sessions import session_of
from tests.world import PUBLIC_URL, World

FROM_OUR_PAGE = {"Sec-Fetch-Site": "same-origin", "Origin": "null"}
"""What Chromium says of a form that a page with `Referrer-Policy: no-referrer` posts."""


class Visitor:
    """One browser profile, at a network address."""

    def __init__(self, world: World, address: str = "127.0.0.1") -> None:
        self.world = world
        self.client = world.calling_from(address)
        self.csrf = ""

    async def sign_in(self, email: str, *, by_passkey: bool = True) -> "Visitor":
        """Begin a session, without a mail."""
        session = await session_of(self.world.service, email, by_passkey=by_passkey)
        self.person = session.person
        self.keep(session.token)
        secrets = await self.world.service.secrets.get()
        self.csrf = form_token(secrets, session.person)
        return self

    def keep(self, token: str) -> None:
        """Set a session cookie, as if this host had set it."""
        self.client.cookies.set(COOKIE, token, urlsplit(PUBLIC_URL).hostname or "")

    async def get(self, path: str, **more: Any) -> httpx.Response:
        """Open a page."""
        return await self.client.get(path, **more)

    async def post(self, path: str, **fields: str) -> httpx.Response:
        """Post one of our forms."""
        form = fields | ({CSRF_FIELD: self.csrf} if self.csrf else {})
        return await self.client.post(path, data=form, headers=FROM_OUR_PAGE)

    async def version(self, path: str) -> str:
        """Return the version of what a page's form is about."""
        page = (await self.get(path)).text
        found = re.search(rf'name="{VERSION_FIELD}" value="(\d+)"', page)
        assert found, page
        return found[1]

    async def confirm(self, path: str) -> httpx.Response:
        """Open a page and post the form on it, which asks for a confirmation."""
        return await self.post(path, **{VERSION_FIELD: await self.version(path)})

    @property
    def session(self) -> str | None:
        """The session's token in the cookie."""
        return self.client.cookies.get(COOKIE)


async def ceremony(visitor: Visitor, path: str) -> tuple[dict[str, Any], str]:
    """Return the options and the challenge of a page's form."""
    page = (await visitor.get(path)).text
    options = re.search(r'data-options="([^"]*)"', page)
    challenge = re.search(r'name="challenge" value="([^"]*)"', page)
    csrf = re.search(rf'name="{CSRF_FIELD}" value="([^"]*)"', page)
    assert options, page
    assert challenge
    assert csrf
    visitor.csrf = csrf[1]
    return json.loads(html.unescape(options[1])), challenge[1]


def local(url: str) -> str:
    """Return the path of a link."""
    return url.removeprefix(PUBLIC_URL)


def site_map_of(service: Service) -> SiteMap:
    """Return the map of all pages."""
    no_limiter: Any = None  # signing in needs one, a look at the map does not
    return pages(service, no_limiter)[0].opt["site_map"]
