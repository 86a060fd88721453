"""`/console/{partner_id}/tutorial`: a first claim and one with a document, to paste into a shell.

They carry `$CLAIMS_API_KEY`. Tokens are not stored, so carrying a key means issuing one: on demand,
by a post, shown once. The traffic of test mode ticks what was done.
"""

import shlex
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec
from litestar import get, post

from service.documents.paths import BYTES_MAX
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.pages.console.checklist import CLAIMS, ONBOARDINGS, UPLOADS, Checklists, Facts
from service.pages.console.frame import CONSOLE, START, console_page
from service.pages.console.keys import KeyPages
from service.pages.gate import member_of
from service.pages.shell import lead_to
from service.pages.site_map import Html, Page
from service.pages.visit import form_of
from service.sandbox.fixtures import fixture_ids

REFERENCE: Final = "tutorial-1"
TUTORIAL: Final = {"page": Page("member", "tutorial.nav", START)}

_PDF: Final = "application/pdf"
_NOTED: Final = "upload.txt"
"""The file in which the answer with the upload URL is kept."""
_PATH_HERE: Final = "STORAGE_PATH"
_OK: Final = HTTPStatus.OK
_CREATED: Final = HTTPStatus.CREATED


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
    create = _post(f"{base_url}/claims", claim)
    listing = _call(f"{base_url}/claims?entity_id={ids.connected_entity_id}")
    gone = _post(f"{base_url}/claims", claim | {"entity_id": ids.disconnected_entity_id})
    return [
        TutorialStep("look", listing, 200),
        TutorialStep("create", create, 201),
        TutorialStep("repeat", create, 200),
        TutorialStep("refused", gone, 403),
        TutorialStep("onboard", _post(f"{base_url}/onboardings", business), 201),
        *_document_steps(base_url, claim | {"partner_claim_id": f"{REFERENCE}-with-document"}),
        TutorialStep("list", listing, 200),
    ]


def _document_steps(base_url: str, claim: dict[str, Any]) -> list[TutorialStep]:
    """Return how a claim gets a document; the answer with its URL is kept in a file meanwhile."""
    file = {"filename": "invoice.pdf", "mime_type": _PDF}
    named = {name: claim[name] for name in ("entity_id", "partner_claim_id")}
    mint = f"{_post(f'{base_url}/documents/upload-url', named | file)} \\\n  | tee {_NOTED}"
    upload = (
        f"printf '%%PDF-1.4\\n' > invoice.pdf\ncurl -i -X PUT {_noted('upload_url')} \\\n"
        f"  -H 'Content-Type: {_PDF}' \\\n"
        f"  -H 'x-goog-content-length-range: 0,{BYTES_MAX}' \\\n"
        "  --data-binary @invoice.pdf"
    )
    refers = claim | {"document_refs": [{"storage_path": _PATH_HERE, **file}]}
    path = f"'{_noted('storage_path')}'"  # between two parts of the quoted body
    create = _post(f"{base_url}/claims", refers).replace(_PATH_HERE, path)
    return [
        TutorialStep("document", mint, 201),
        TutorialStep("upload", upload, 200),
        TutorialStep("attach", create, 201),
    ]


def exports(base_url: str, partner_id: str, epoch: int) -> str:
    """Return the lines that set what the commands, and the programs of libraries, read.

    The last one ends where the key begins.
    """
    entity_id = fixture_ids(partner_id, epoch).connected_entity_id
    return (
        f"export CLAIMS_API_URL={base_url}\nexport CLAIMS_ENTITY_ID={entity_id}\n"
        "export CLAIMS_API_KEY="
    )


def done(facts: Facts) -> frozenset[str]:
    """Return the names of the steps that a partner has done, as far as its traffic shows."""
    is_done = {
        "look": facts.answered("GET", CLAIMS, _OK),
        "create": facts.answered("POST", CLAIMS, _CREATED),
        "repeat": facts.answered("POST", CLAIMS, _OK),
        "refused": facts.met("partner_disconnected"),
        "onboard": facts.answered("POST", ONBOARDINGS, _CREATED),
        "document": facts.answered("POST", UPLOADS, _CREATED),
        "upload": facts.has_documents,  # the upload goes to the store, which tells us nothing
        "attach": facts.has_documents,
        "list": _has_listed(facts),
    }
    return frozenset(name for name, step_is_done in is_done.items() if step_is_done)


def _has_listed(facts: Facts) -> bool:
    """Return whether claims were listed after one was made."""
    made = [row["first_at"] for row in facts.seen if _is(row, "POST", CLAIMS, _CREATED)]
    listed = [row["last_at"] for row in facts.seen if _is(row, "GET", CLAIMS, _OK)]
    return any(listing > min(made) for listing in listed) if made else False


def _is(row: Any, method: str, route: str, status: int) -> bool:  # noqa: ANN401 - as Facts has it
    return (row["method"], row["route"], row["status"]) == (method, route, status)


def _noted(name: str) -> str:
    """Return a field of the answer that was kept, for a shell to find."""
    return f"""\"$(sed -n 's/.*"{name}":"\\([^"]*\\)".*/\\1/p' {_NOTED})\""""


def _post(url: str, body: dict[str, Any]) -> str:
    sent = shlex.quote(msgspec.json.encode(body).decode())
    return f"{_call(url)} \\\n  -H 'Content-Type: application/json' \\\n  -d {sent}"


def _call(url: str) -> str:
    return f'curl -i {shlex.quote(url)} \\\n  -H "Authorization: Bearer $CLAIMS_API_KEY"'


def tutorial_router(keys: KeyPages, checklists: Checklists, base_url: str) -> OneOffRouter:
    """Return the router of the tutorial."""

    async def shown(request: AnyRequest, token: str | None = None) -> Html:
        member = member_of(request)
        key_id, proof = await keys.drawn(member)
        return console_page(
            request,
            "tutorial.html",
            steps=steps(base_url, member.partner_id, member.sandbox_epoch),
            done=done(await checklists.facts(member.partner_id)),
            settings=exports(base_url, member.partner_id, member.sandbox_epoch),
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
        issued = await keys.issue(request, form | {"mode": "test", "name": ""})
        if issued is None:  # a form that was sent twice
            return lead_to(f"{member_of(request).path}/tutorial?again")
        return await shown(request, issued.token)

    return OneOffRouter(f"{CONSOLE}/tutorial", route_handlers=[tutorial, with_key])
