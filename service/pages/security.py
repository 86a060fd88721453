"""`/security`: a person's own passkeys and sessions."""

from typing import Final

from litestar import get, post
from litestar.handlers import HTTPRouteHandler

from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.pages.gate import customer_cause
from service.pages.proof import Proofs
from service.pages.shell import lead_to, page, safe_path
from service.pages.site_map import Html, Page, PathText
from service.pages.visit import form_of, signed_in

SECURITY = {"page": Page("signed-in")}
_DONE: Final = frozenset({"removed"})
"""What the page can say was just done, in `?done=`."""


def security_router(proofs: Proofs) -> OneOffRouter:
    """Return the router of passkeys and sessions."""
    ceremonies, passkeys, sessions = proofs.ceremonies, proofs.passkeys, proofs.sessions

    @get(opt=SECURITY)
    async def shown(request: AnyRequest) -> Html:
        """List the person's passkeys and sessions."""
        person, done = signed_in(request), request.query_params.get("done")
        return page(
            request,
            "security.html",
            done=done if done in _DONE else None,
            passkeys=await passkeys.of(person.person_id),
            are_possible=ceremonies.are_possible,
            sessions=await sessions.of(person.person_id),
        )

    @get("/passkey", opt=SECURITY)
    async def ask(request: AnyRequest) -> Html:
        """Explain what a passkey is, and ask the browser for one."""
        await proofs.require(request)
        person = signed_in(request)
        if not ceremonies.are_possible:
            return lead_to("/security")
        ceremony = await ceremonies.creation(person, await passkeys.of(person.person_id))
        next_path = safe_path(request.query_params.get("next", ""), "/security")
        return page(request, "passkey.html", ceremony=ceremony, next_path=next_path)

    @post("/passkey", opt=SECURITY)
    async def add(request: AnyRequest) -> Html:
        """Add the passkey that the browser made, and begin a new session."""
        await proofs.require(request)
        person, form = signed_in(request), form_of(request)
        credential_id, public_key = await ceremonies.created(person, form)
        cause = customer_cause(request, person.person_id)
        await passkeys.add(person.person_id, credential_id, public_key, cause)
        return await proofs.renewed(request, safe_path(form.get("next", ""), "/security"))

    @post("/sessions/{session_id:str}/end", opt=SECURITY)
    async def end(request: AnyRequest, session_id: PathText) -> Html:
        """End one session of the person; any but this one takes having signed in lately."""
        person = signed_in(request)
        if session_id != person.session_id:
            proofs.require_recent(request)
        await sessions.end_one(person.person_id, session_id)
        return lead_to("/security")

    @post("/sessions/end", opt=SECURITY)
    async def end_others(request: AnyRequest) -> Html:
        """End every session of the person but this one."""
        proofs.require_recent(request)
        person = signed_in(request)
        await sessions.end_others(person.person_id, person.session_id)
        return lead_to("/security")

    handlers = [shown, ask, add, *_removing(proofs), end, end_others]
    return OneOffRouter("/security", route_handlers=handlers)


def _removing(proofs: Proofs) -> list[HTTPRouteHandler]:
    """Return the handlers that remove a passkey, once that is confirmed."""
    passkeys, sessions = proofs.passkeys, proofs.sessions

    @get("/passkeys/{passkey_id:str}/remove", opt=SECURITY)
    async def confirm(request: AnyRequest, passkey_id: PathText) -> Html:
        """Explain what removing a passkey means, and ask for confirmation."""
        held = await passkeys.of(signed_in(request).person_id)
        passkey = next((one for one in held if one.passkey_id == passkey_id), None)
        if passkey is None:  # removed since the list was shown
            return lead_to("/security")
        return page(request, "passkey_remove.html", passkey=passkey)

    @post("/passkeys/{passkey_id:str}/remove", opt=SECURITY)
    async def remove(request: AnyRequest, passkey_id: PathText) -> Html:
        """Remove a passkey, and end the sessions that whoever has it may have begun."""
        await proofs.require(request)
        person = signed_in(request)
        cause = customer_cause(request, person.person_id)
        await passkeys.remove(person.person_id, passkey_id, cause)
        await sessions.end_others(person.person_id, person.session_id)
        return lead_to("/security?done=removed")

    return [confirm, remove]
