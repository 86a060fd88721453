"""`/console/{partner_id}/tutorial`: a first claim, by commands to paste into a shell.

They carry `$API_KEY`. Tokens are not stored, so carrying a key means issuing one: on demand, by a
post, shown once.
"""

import shlex
from typing import Any, Final, NamedTuple

import msgspec
from litestar import get, post

from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.pages.console.frame import CONSOLE, START, console_page
from service.pages.console.keys import KeyPages
from service.pages.gate import member_of
from service.pages.shell import lead_to
from service.pages.site_map import Html, Page
from service.pages.visit import form_of
from service.sandbox.fixtures import fixture_ids

REFERENCE: Final = "tutorial-1"
TUTORIAL: Final = {"page": Page("member", "tutorial.nav", START)}


class TutorialStep(NamedTuple):
    """A step: texts `tutorial.<name>.title` and `.why`, a command, and the status it gets."""

    name: str
    command: str
    status: int


def steps(base_url: str, partner_id: str, epoch: int) -> list[TutorialStep]:
    """Return the steps in the sandbox of a partner; `base_url` is the API's, with its version."""
    ids = fixture_ids(partner_id, epoch)
    claim = {
        "entity_id": ids.connected_entity_id,
        "partner_claim_id": REFERENCE,
        "defendant": {"name": "Example Debtor Ltd"},
        "invoices": [{"number": "INV-1", "total_amount_for_invoice": "125.00"}],
    }
    business = {
        "partner_user_id": REFERENCE,
        "company_name": "Example Trading Ltd",
        "user_email": "owner@example.com",
    }
    upload = {
        "entity_id": ids.connected_entity_id,
        "partner_claim_id": f"{REFERENCE}-with-document",
        "filename": "invoice.pdf",
        "mime_type": "application/pdf",
    }
    create = _post(f"{base_url}/claims", claim)
    listing = _call(f"{base_url}/claims?entity_id={ids.connected_entity_id}")
    gone = _post(f"{base_url}/claims", claim | {"entity_id": ids.disconnected_entity_id})
    return [
        TutorialStep("look", listing, 200),
        TutorialStep("create", create, 201),
        TutorialStep("repeat", create, 200),
        TutorialStep("list", listing, 200),
        TutorialStep("refused", gone, 403),
        TutorialStep("onboard", _post(f"{base_url}/onboardings", business), 201),
        TutorialStep("document", _post(f"{base_url}/documents/upload-url", upload), 201),
    ]


def _post(url: str, body: dict[str, Any]) -> str:
    sent = shlex.quote(msgspec.json.encode(body).decode())
    return f"{_call(url)} \\\n  -H 'Content-Type: application/json' \\\n  -d {sent}"


def _call(url: str) -> str:
    return f'curl -i {shlex.quote(url)} \\\n  -H "Authorization: Bearer $API_KEY"'


def tutorial_router(keys: KeyPages, base_url: str) -> OneOffRouter:
    """Return the router of the tutorial."""

    async def shown(request: AnyRequest, token: str | None = None) -> Html:
        member = member_of(request)
        key_id, proof = await keys.drawn(member)
        return console_page(
            request,
            "tutorial.html",
            steps=steps(base_url, member.partner_id, member.sandbox_epoch),
            token=token,
            key_id=key_id,
            proof=proof,
            again="again" in request.query_params,
        )

    @get(opt=TUTORIAL)
    async def tutorial(request: AnyRequest) -> Html:
        """Show a first claim, step by step."""
        return await shown(request)

    @post(opt=TUTORIAL)
    async def with_key(request: AnyRequest) -> Html:
        """Show the same with a new test key, once."""
        form = form_of(request)
        issued = await keys.issue(request, form | {"mode": "test"})
        if issued is None:  # a form that was sent twice
            return lead_to(f"{member_of(request).path}/tutorial?again")
        return await shown(request, issued.token)

    return OneOffRouter(f"{CONSOLE}/tutorial", route_handlers=[tutorial, with_key])
