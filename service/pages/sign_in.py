"""`/sign-in`, `/sign-out`: a link in an email, redeemed when a person submits the form.

Asking leaves a cookie in the browser that asked. Any other one has to enter the code that this one
shows: a link that somebody passes on signs nobody in by itself.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final

from litestar import get, post
from litestar.handlers import HTTPRouteHandler

from service.core.errors import Refusal
from service.http.bodies import AnyRequest
from service.http.client_address import network_of
from service.http.rate_limit.limiter import RateLimiter
from service.http.router import OneOffRouter
from service.http.scalars import email_fault, typed_email
from service.http.tracebacks import answered
from service.pages.carried import FORM_COOKIE, LIFETIME, LOST, fate_of, forgotten
from service.pages.shell import lead_to, page, refused, safe_path
from service.pages.site_map import Html, Page, PathText
from service.pages.visit import (
    ANY_SESSION,
    KNOWN_COOKIE,
    SessionChanged,
    cookie_of,
    form_of,
    host_cookie,
    no_cookie,
    person_of,
    place_of,
    session_cookie,
)
from service.pages.words import text
from service.people.browsers import browser_token
from service.people.marks import Mark, Marks
from service.people.sessions import MARK_LIFETIME, Person, Sessions
from service.people.sign_in import ASKED_MAX, COUNTED_WITHIN, LINK_LIFETIME, SignIn, SignInLink

NOWHERE: Final = ""
"""The path of visitors who requested no page: where to send them is looked up after signing in."""

BROWSER_COOKIE: Final = "__Host-sign-in"

HomeOf = Callable[[Person], Awaitable[str]]
"""Returns the path that a person belongs to."""


def sign_in_router(
    sign_in: SignIn,
    marks: Marks,
    sessions: Sessions,
    limiter: RateLimiter,
    home_of: HomeOf,
    origin: str,
) -> OneOffRouter:
    """Return the router of signing in and out at an origin."""

    @get("/sign-in/{token:str}", opt={"page": Page("token")})
    async def confirm(request: AnyRequest, token: PathText) -> Html:
        """Name the address that the link signs in; ask another browser for the code."""
        try:
            return _confirm_page(request, await _look(sign_in, limiter, request, token))
        except Refusal as refusal:
            person = person_of(request)
            if person is None or not refusal.code.startswith("sign_in_link_"):
                raise
            # Back in the browser's history, or in the mail: nobody needs another link then.
            title = text(f"refused.{refusal.code}.title")
            return refused(request, refusal, title, text("sign_in.signed_in", email=person.email))

    # Guesses by their network, and codes by their link: nobody who has one keeps out the browser
    # that asked for it.
    @post(
        "/sign-in/{token:str}",
        opt={"page": Page("token", charges_itself=True)},
        exception_handlers=answered({SessionChanged: _look_again}),
    )
    async def redeem(request: AnyRequest, token: PathText) -> Html:
        """Use the link up, and begin a session."""
        link = await _look(sign_in, limiter, request, token)
        browser, code = _browser_of(request), form_of(request).get("code", "")
        if not link.is_asked_from(browser):
            await _charge(limiter, f"codes of {link.link_id}")
        try:
            session, next_path = await sign_in.redeem(
                token, request.scope["state"]["session"], browser, code, place_of(request)
            )
        except Refusal as refusal:
            if refusal.code != "validation_failed":
                raise
            return _confirm_page(request, link, refusal)
        home = next_path or await home_of(session.person)
        mark = host_cookie(KNOWN_COOKIE, await marks.of(session), MARK_LIFETIME)
        return lead_to(home, [session_cookie(session.token), no_cookie(BROWSER_COOKIE), mark])

    @post("/sign-out", opt={"page": Page("public"), ANY_SESSION: True})
    async def sign_out(request: AnyRequest) -> Html:
        """End the session of this browser, whichever it had when the page was opened."""
        token = request.scope["state"]["session"]
        if token is not None:
            await sessions.end(token)
        return lead_to("/sign-in", [no_cookie(), *forgotten()])

    asking = _asking(sign_in, marks, limiter, origin)
    return OneOffRouter("/", route_handlers=[*asking, confirm, redeem, sign_out])


def sign_in_page(
    request: AnyRequest,
    next_path: str,
    email: str = "",
    faults: Sequence[str] = (),
    *,
    is_again: bool = False,
) -> Html:
    """Return the page that asks for an address; `is_again`: whoever it is is signed in already."""
    status = 400 if faults else 200
    values = {"next_path": next_path, "email": email, "faults": faults, "is_again": is_again}
    fate, minutes = fate_of(request), LIFETIME // timedelta(minutes=1)
    shown = page(request, "sign_in.html", status, form=fate, minutes=minutes, **values)
    if fate == LOST:
        shown.cookies.append(no_cookie(FORM_COOKIE))
    return shown


def _asking(
    sign_in: SignIn, marks: Marks, limiter: RateLimiter, origin: str
) -> list[HTTPRouteHandler]:
    """Return the handlers of asking for a link."""

    @get("/sign-in", opt={"page": Page("public")})
    async def ask(request: AnyRequest) -> Html:
        """Ask for an email address."""
        next_path = safe_path(request.query_params.get("next", ""), NOWHERE)
        return sign_in_page(request, next_path)

    @post("/sign-in", opt={"page": Page("public")})
    async def send(request: AnyRequest) -> Html:
        """Send a link to an address, known or not."""
        form = form_of(request)
        email = typed_email(form.get("email", ""))
        next_path = safe_path(form.get("next", ""), NOWHERE)
        mark = await _charged_mark(request, marks, limiter, email)
        fault = email_fault(email)
        if fault is not None:
            return sign_in_page(request, next_path, email, (fault,))
        browser = browser_token(_browser_of(request))
        await sign_in.ask(email, next_path, browser, mark, origin=origin)
        return lead_to("/sign-in/sent", [host_cookie(BROWSER_COOKIE, browser, LINK_LIFETIME)])

    @get("/sign-in/sent", opt={"page": Page("public")})
    async def sent(request: AnyRequest) -> Html:
        """Confirm that the link is on its way; show the code for other browsers."""
        browser = _browser_of(request)
        code = await sign_in.code_of(browser) if browser else None
        minutes = COUNTED_WITHIN // timedelta(minutes=1)
        # Whoever asks with a cookie that is not kept would be asked for a code that nothing shows.
        is_kept = browser is not None or person_of(request) is not None
        values = {"most": ASKED_MAX, "minutes": minutes}
        return page(request, "sign_in_sent.html", code=code, is_kept=is_kept, **values)

    return [ask, send, sent]


def _browser_of(request: AnyRequest) -> str | None:
    """Return the token of a browser that has asked for a link."""
    return cookie_of(request.headers, BROWSER_COOKIE)


def _look_again(request: AnyRequest, _error: SessionChanged) -> Html:
    """Lead whoever has signed in elsewhere to what the link does now: mostly, it is used up."""
    return lead_to(request.url.path)


def _confirm_page(request: AnyRequest, link: SignInLink, refusal: Refusal | None = None) -> Html:
    """Return the page that uses a link up; `refusal` is that of a wrong code."""
    faults = (refusal.field_errors or {}) if refusal else {}
    return page(
        request,
        "sign_in_confirm.html",
        400 if refusal else 200,
        email=link.email,
        is_here=link.is_asked_from(_browser_of(request)),
        faults=faults.get("code", ()),
    )


async def _charged_mark(
    request: AnyRequest, marks: Marks, limiter: RateLimiter, email: str
) -> Mark | None:
    """Charge a browser's mark of the address that it asks for, and return it; else its network.

    So no neighbour at the same network keeps a known browser out. A mark that has ended is charged
    with its network: it is a stranger's.
    """
    mark = await marks.read(cookie_of(request.headers, KNOWN_COOKIE), email)
    if mark is not None:
        await _charge(limiter, f"mark {mark.mark_id}")
        if await marks.holds(mark):
            return mark
    await _charge(limiter, network_of(request.scope))
    return None


async def _charge(limiter: RateLimiter, bucket: str) -> None:
    """Charge what a network or a browser asks for, guesses, or the codes that a link is tried with.

    Refuses with `rate_limited`. `SignIn.ask` limits by address.
    """
    allowance = await limiter.charge_sign_in(bucket)
    if not allowance.admitted:
        raise Refusal("rate_limited", retry_after_seconds=allowance.retry_after_seconds)


async def _look(
    sign_in: SignIn, limiter: RateLimiter, request: AnyRequest, token: str
) -> SignInLink:
    """Return what a link would do; charge an unknown one as a guess. Refuses as `SignIn` does.

    Guesses have an allowance of their own: any page elsewhere can make a visitor's browser
    open such paths, and must not keep their network from asking for links.
    """
    try:
        return await sign_in.look(token)
    except Refusal as refusal:
        if refusal.code == "sign_in_link_invalid":
            await _charge(limiter, f"guesses of {network_of(request.scope)}")
        raise
