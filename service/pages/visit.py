"""Who visits a page, and what a request may do: sessions, same-origin posts, forms.

Anybody can send what is read here, so lengths come first: of the address, of a form, of each field
before what it has to look like.

A middleware of the pages' router, so that no page can be reached around it.
"""

import hmac
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from urllib.parse import parse_qsl

from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie, Headers
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send

from service.core.errors import Refusal
from service.core.visitors import is_visited_by, visited_by
from service.http.bodies import AnyRequest, read_body
from service.http.client_address import network_of
from service.ledger.service_keys import Secrets, ServiceKeyStore
from service.people.sessions import LIFETIME, Person, Sessions, SignInPlace

AnyConnection = ASGIConnection[Any, Any, Any, Any]

COOKIE: Final = "__Host-session"
KNOWN_COOKIE: Final = "__Host-known"
"""Of the mark of whoever signed in last in a browser (service/people/marks.py)."""
CSRF_FIELD: Final = "csrf"
VERSION_FIELD: Final = "version"
STATUS_FIELD: Final = "status_version"
REVIEW_FIELD: Final = "review_version"
"""In the form of a partner's review, which decides, too: the versions of its status and of its
review. VERSION_FIELD was each of them in an earlier release, where neither may be taken for it."""
SEEN_FIELD: Final = "seen"
"""The stage of a claim that a form was made for: in place of a version."""
ANY_SESSION: Final = "any_session"
"""The option of a handler that takes forms which were made for another session than the present."""
DIGITS_MAX: Final = 19
"""A longer number is no version, and takes long to read."""
FORM_BYTES_MAX: Final = 16 * 1024
"""A larger form is refused with `payload_too_large`, unread."""
FIELDS_MAX: Final = 200
QUERY_BYTES_MAX: Final = 8 * 1024

_PATH: Final = re.compile(r"/[!-~]{0,511}")
"""What the paths of pages are made of: words of ours, ids and tokens."""
_MALFORMED: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
BROWSER_CHARACTERS_MAX: Final = 200

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
        "font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; "
        "base-uri 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every page: links are credentials, and what people see is theirs alone."""


class SignInNeeded(Exception):
    """The page is for people who are signed in; the handler redirects them to sign in, and back.

    A form that was read waits for them, as with ProofNeeded.
    """


class SessionChanged(Exception):
    """A form of ours that was made before somebody signed in, or for another sign-in than now.

    It waits for whoever it was made for, as with ProofNeeded.
    """


class ProofNeeded(Exception):
    """Whoever is signed in has to prove anew who they are; they are asked, and led back."""


@dataclass(frozen=True, eq=False)
class Visits(ASGIMiddleware):
    """Puts the signed-in person, if any, into the request's state; refuses foreign posts."""

    scopes = (ScopeType.HTTP,)

    sessions: Sessions
    secrets: ServiceKeyStore
    public_url: str

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Put the person, the session and the form's token into the request's state."""
        with visited_by(f"network {network_of(scope)}"):
            await self._visit(scope, receive, send, next_app)

    async def _visit(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        state = scope["state"]
        state["headers"].update(HEADERS)
        state["person"] = state["session"] = state["csrf"] = None
        refuse_unknown(scope["path"], scope["query_string"])
        if scope.get("method") not in _SAFE:
            self._refuse_foreign(Headers.from_scope(scope))
        await self.recognise(scope)
        await next_app(scope, receive, send)

    async def recognise(self, scope: Scope) -> None:
        """Put whoever has a session into the request's state, with the token of their forms.

        And our keys, which forms need that wait until their sender is signed in.
        """
        state, token = scope["state"], cookie_of(Headers.from_scope(scope), COOKIE)
        person = await self.sessions.read(token) if token else None
        if person is None and scope.get("method") in _SAFE:
            return
        keys = state["keys"] = await self.secrets.get()
        if person is not None:
            is_visited_by(f"person {person.person_id}")
            state["person"], state["session"] = person, token
            state["csrf"] = form_token(keys, person)

    def _refuse_foreign(self, headers: Headers) -> None:
        """Refuse a post that another site made (Fetch Metadata; without it, by Origin)."""
        site = headers.get("sec-fetch-site")
        is_ours = site == "same-origin" if site else headers.get("origin") == self.public_url
        if not is_ours:
            raise Refusal("cross_site_request")


def person_of(connection: AnyConnection) -> Person | None:
    """Return who is signed in, if anyone is."""
    return connection.scope["state"].get("person")  # absent where the request was refused earlier


def form_token(keys: Secrets, person: Person) -> str:
    """Return the token of a person's forms: a part of their session, and one of their own.

    The session's part is what a form is held to; the person's is for a form that waits.
    """
    return f"{keys.link_token('csrf', person.forms)}.{owner_token(keys, person)}"


def owner_token(keys: Secrets, person: Person) -> str:
    """Return by what a person's forms are known as theirs, whoever uses the browser by then."""
    return keys.link_token("form-of", person.address_hash)


def signed_in(connection: AnyConnection) -> Person:
    """Return who is signed in; raise SignInNeeded where nobody is."""
    person = person_of(connection)
    if person is None:
        raise SignInNeeded
    return person


def place_of(request: AnyRequest) -> SignInPlace:
    """Return where a session is begun from, as its person will be shown it."""
    browser = request.headers.get("user-agent", "")[:BROWSER_CHARACTERS_MAX]
    return SignInPlace(network_of(request.scope), browser if browser.isprintable() else "")


def form_of(request: AnyRequest) -> dict[str, str]:
    """Return the posted form's fields, each once, stripped of surrounding white space."""
    return request.scope["state"]["form"]


def expected_version(request: AnyRequest, field: str = VERSION_FIELD) -> int:
    """Return the version of what a form was made for; -1, which nothing has, for any other text."""
    given = form_of(request).get(field, "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < DIGITS_MAX else -1


async def read_form(request: AnyRequest) -> None:
    """Read the form of every post into the request's state, before its handler.

    Refuses with `validation_failed` a body that is not a form. Raises SessionChanged for a
    signed-in person's form without their session's token: that it is ours, `Visits` has seen, which
    is enough for a handler whose options have ANY_SESSION.
    """
    if request.method != "POST":
        return
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await read_body(request, FORM_BYTES_MAX)
    if kind != "application/x-www-form-urlencoded" and body:
        raise Refusal("validation_failed", form_errors=["expected a form"])
    form = form_fields(body)
    state, given = request.scope["state"], form.pop(CSRF_FIELD, "")
    is_any = request.scope["route_handler"].opt.get(ANY_SESSION, False)
    state["form"], state["form_token"] = form, given
    if not (state["csrf"] is None or is_any or _is_same_session(given, state["csrf"])):
        raise SessionChanged


def _is_same_session(given: str, expected: str) -> bool:
    parts = (token.partition(".")[0].encode() for token in (given, expected))
    return hmac.compare_digest(*parts)


def form_fields(body: bytes) -> dict[str, str]:
    """Return a form's fields; refuses with `validation_failed` what is none.

    No browser sends a malformed percent sign; of many of them, reading each takes long.
    """
    unread = Refusal("validation_failed", form_errors=["the form cannot be read"])
    if _MALFORMED.search(body):
        raise unread
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX
        )
    except ValueError:  # UnicodeDecodeError is one
        raise unread from None
    form = {name: value.strip() for name, value in pairs}
    if any("\0" in value for value in form.values()):
        raise Refusal("validation_failed", form_errors=["NUL is not allowed"])
    return form


def session_cookie(token: str) -> Cookie:
    """Return the cookie of a session."""
    return host_cookie(COOKIE, token, LIFETIME)


def no_cookie(name: str = COOKIE) -> Cookie:
    """Return the cookie that removes the session's, or another one of ours."""
    return host_cookie(name, "", timedelta())


def host_cookie(name: str, value: str, lifetime: timedelta) -> Cookie:
    """Return a cookie that no script reads; `__Host-` binds it to this host alone, over TLS."""
    return Cookie(
        key=name,
        value=value,
        path="/",
        httponly=True,
        secure=True,
        samesite="lax",
        max_age=int(lifetime.total_seconds()),
    )


def cookie_of(headers: Headers, name: str) -> str | None:
    """Return a cookie's value; None if it is absent or set twice: one was planted."""
    given = ";".join(headers.getall("cookie", []))
    found = re.findall(rf"(?:^|;)[ \t]*{re.escape(name)}=([^;]*)", given)
    return found[0].strip() if len(found) == 1 else None


def refuse_unknown(path: str, query: bytes) -> None:
    """Refuse an address that no page has, before anybody is asked for it.

    An address that cannot be shown, such as one with line ends or marks that reorder text, would
    fail where it is put into a header or asked of the database. PostgreSQL cannot store NUL.
    """
    if not _PATH.fullmatch(path) or len(query) > QUERY_BYTES_MAX or b"%00" in query:
        raise Refusal("not_found")
