"""`/sign-in`, `/sign-out`: a link in an email, redeemed when a person submits the form."""

from typing import Final

from litestar import Router, get, post

from service.core.errors import Refusal
from service.http.bodies import AnyRequest
from service.http.rate_limit.limiter import RateLimiter
from service.http.scalars import email_fault
from service.ledger.database import Database
from service.pages.home import landing_of
from service.pages.shell import lead_to, page, safe_path
from service.pages.site_map import Html, Page, PathText
from service.pages.visit import form_of, network_of, no_cookie, session_cookie
from service.people.sessions import Sessions
from service.people.sign_in import SignIn, SignInLink

NOWHERE: Final = ""
"""The path of visitors who requested no page: where to send them is looked up after signing in."""


def sign_in_router(
    sign_in: SignIn, sessions: Sessions, limiter: RateLimiter, accounts: Database
) -> Router:
    """Return the router of signing in and out."""

    @get("/sign-in", opt={"page": Page("public")})
    async def ask(request: AnyRequest) -> Html:
        """Ask for an email address."""
        next_path = safe_path(request.query_params.get("next", ""), NOWHERE)
        return page(request, "sign_in.html", next_path=next_path, email="", faults=())

    @post("/sign-in", opt={"page": Page("public")})
    async def send(request: AnyRequest) -> Html:
        """Send a link to an address, known or not."""
        form = form_of(request)
        email, next_path = form.get("email", ""), safe_path(form.get("next", ""), NOWHERE)
        fault = email_fault(email)
        if fault is not None:
            return page(
                request, "sign_in.html", 400, next_path=next_path, email=email, faults=(fault,)
            )
        await _charge(limiter, network_of(request))
        await sign_in.ask(email, next_path)
        return lead_to("/sign-in/sent")

    @get("/sign-in/sent", opt={"page": Page("public")})
    async def sent(request: AnyRequest) -> Html:
        """Confirm that the link is on its way."""
        return page(request, "sign_in_sent.html")

    @get("/sign-in/{token:str}", opt={"page": Page("token")})
    async def confirm(request: AnyRequest, token: PathText) -> Html:
        """Name the address that the link signs in."""
        link = await _look(sign_in, limiter, request, token)
        return page(request, "sign_in_confirm.html", email=link.email)

    @post("/sign-in/{token:str}", opt={"page": Page("token")})
    async def redeem(request: AnyRequest, token: PathText) -> Html:
        """Use the link up, and begin a session."""
        await _look(sign_in, limiter, request, token)
        session, next_path = await sign_in.redeem(token, request.scope["state"]["session"])
        home = next_path or (await landing_of(accounts, session.person)).home
        return lead_to(home, [session_cookie(session.token)])

    @post("/sign-out", opt={"page": Page("public")})
    async def sign_out(request: AnyRequest) -> Html:
        """End the session of this browser."""
        token = request.scope["state"]["session"]
        if token is not None:
            await sessions.end(token)
        return lead_to("/sign-in", [no_cookie()])

    return Router("/", route_handlers=[ask, send, sent, confirm, redeem, sign_out])


async def _charge(limiter: RateLimiter, bucket: str) -> None:
    """Charge what a network asks for or guesses; refuses with `rate_limited`.

    `SignIn.ask` limits by address.
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
            await _charge(limiter, f"guesses of {network_of(request)}")
        raise
