"""`/proof`: proving anew who one is, with a passkey, and being led back."""

from dataclasses import dataclass

from litestar import get, post

from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.pages.shell import lead_to, page, safe_path, with_next
from service.pages.sign_in import sign_in_page
from service.pages.site_map import Html, Page
from service.pages.visit import (
    ProofNeeded,
    SignInNeeded,
    form_of,
    place_of,
    session_cookie,
    signed_in,
)
from service.people.ceremonies import Ceremonies
from service.people.passkeys import PasskeyCommands
from service.people.sessions import Sessions

PROOF = {"page": Page("signed-in")}


@dataclass(frozen=True, slots=True)
class Proofs:
    """Who proved lately who they are."""

    passkeys: PasskeyCommands
    ceremonies: Ceremonies
    sessions: Sessions

    async def require(self, request: AnyRequest) -> None:
        """Raise ProofNeeded unless whoever is signed in proved lately who they are.

        With a passkey if they have one, else by having signed in.
        """
        self.require_recent(request)
        person = signed_in(request)
        by_link = self.ceremonies.are_possible and not person.by_passkey
        if by_link and await self.passkeys.of(person.person_id):
            raise ProofNeeded

    def require_recent(self, request: AnyRequest) -> None:
        """Raise ProofNeeded unless whoever is signed in did so lately, with a passkey or without.

        For what only takes access away: whoever finds a passkey that is not theirs, added by
        somebody who read their mail, can end that person's sessions.
        """
        if not signed_in(request).is_fresh:
            raise ProofNeeded

    async def renewed(self, request: AnyRequest, next_path: str) -> Html:
        """Begin a session of whoever just used a passkey, and lead on; raise SignInNeeded."""
        token = request.scope["state"]["session"]
        session = await self.sessions.renew(token, signed_in(request), place_of(request))
        if session is None:
            raise SignInNeeded
        return lead_to(next_path, [session_cookie(session.token)])


def proof_router(proofs: Proofs) -> OneOffRouter:
    """Return the router of the proof."""
    ceremonies, passkeys = proofs.ceremonies, proofs.passkeys

    @get("/proof", opt=PROOF)
    async def ask(request: AnyRequest) -> Html:
        """Ask for a passkey; whoever has none is led to adding one, or asked to sign in anew."""
        person = signed_in(request)
        next_path = safe_path(request.query_params.get("next", ""))
        known = await passkeys.of(person.person_id)
        if not known or not ceremonies.are_possible:
            if person.is_fresh and ceremonies.are_possible:
                return lead_to(with_next("/security/passkey", next_path))
            return sign_in_page(request, next_path, person.email, is_again=True)
        ceremony = await ceremonies.request(person, known)
        return page(request, "proof.html", ceremony=ceremony, next_path=next_path)

    @post("/proof", opt=PROOF)
    async def prove(request: AnyRequest) -> Html:
        """Check the passkey, and begin a new session."""
        person, form = signed_in(request), form_of(request)
        await ceremonies.prove(person, form, await passkeys.of(person.person_id))
        return await proofs.renewed(request, safe_path(form.get("next", "")))

    return OneOffRouter("/", route_handlers=[ask, prove])
