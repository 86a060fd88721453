"""`/console/{partner_id}/keys`: issuing, rolling and revoking API keys; each token is shown once.

Only the response to the form has the token. A form that is sent twice, by reloading that page,
issues nothing and names the key of the first time: it carries the id of the key to issue, and a
rolled key's successor has an id that follows from its own. A colleague may have rolled or revoked
the key meanwhile, so a roll is only repeated by who made it, with the same choice.
"""

import hmac
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from litestar import get, post

from projections.partners.reader import PartnersReader
from service.core.clock import Clock
from service.core.errors import Refusal, invalid
from service.facts.caller import Mode
from service.facts.partners import Key
from service.http.bodies import AnyRequest
from service.http.decoding import check
from service.http.router import OneOffRouter
from service.ledger.service_keys import ServiceKeyStore
from service.pages.console.frame import ACCOUNT, CONSOLE, console_page
from service.pages.formats import moment
from service.pages.gate import Member, member_cause, member_of
from service.pages.proof import Proofs
from service.pages.shell import lead_to, messages_of
from service.pages.site_map import Html, Page, PathText
from service.pages.visit import form_of
from service.partners.commands import OVERLAPS, IssuedKey, PartnerCommands, Roll
from service.partners.keys import successor_id
from service.partners.wire import KeyName
from service.sandbox.fixtures import SandboxFixtures

ENDED_MAX: Final = 25
"""How many ended keys are listed, the newest."""

Form = Mapping[str, str]
Faults = Sequence[str]

_NEW: Final[Form] = {}

KEYS: Final = {"page": Page("member", "console.nav.keys", ACCOUNT)}

_PURPOSE: Final = "issue-key"


@dataclass(frozen=True, slots=True)
class KeyPages:
    """What the handlers of keys and of the tutorial share."""

    commands: PartnerCommands
    partners: PartnersReader
    secrets: ServiceKeyStore
    sandbox: SandboxFixtures
    clock: Clock
    proofs: Proofs

    async def listed(self, request: AnyRequest, form: Form = _NEW, faults: Faults = ()) -> Html:
        """Return the list of keys, and a form whose key id is already drawn.

        A form that came back keeps what was entered.
        """
        member = member_of(request)
        key_id, proof = await self.drawn(member)
        keys = list(reversed(await self.keys(member.partner_id)))
        ended = [key["key_id"] for key in keys if key["state"] == "ended"]
        unlisted = set(ended[ENDED_MAX:])
        again = request.query_params.get("again")
        return console_page(
            request,
            "keys.html",
            400 if faults else 200,
            form=form,
            faults=faults,
            keys=[key for key in keys if key["key_id"] not in unlisted],
            unlisted=unlisted,
            ended_max=ENDED_MAX,
            key_id=key_id,
            proof=proof,
            again=again is not None,
            again_key=next((key["key_id"] for key in keys if key["key_id"] == again), None),
        )

    async def issue(self, request: AnyRequest, form: Mapping[str, str]) -> IssuedKey | None:
        """Issue the key that the form names; None for a form that was sent before."""
        member = member_of(request)
        key_id, mode = form.get("key_id", ""), form.get("mode")
        proof = await self._proof(member, key_id)
        if not hmac.compare_digest(form.get("proof", "").encode(), proof.encode()):
            raise invalid("key_id", "not from our form")
        if mode not in {"live", "test"}:
            raise invalid("mode", "expected live or test")
        if mode == "live":
            await self.proofs.require(request)
        known: Mode = "live" if mode == "live" else "test"
        issuing = self.commands.issue_key(
            member.partner_id,
            known,
            member_cause(request),
            key_id,
            name=form.get("name") or None,
        )
        issued = await first_time(issuing)
        if issued and mode == "test":
            await self.sandbox.ensure(member.partner_id, member.sandbox_epoch)
        return issued

    async def drawn(self, member: Member) -> tuple[str, str]:
        """Return the id of a key to be issued, and the proof that we drew it."""
        key_id = self.commands.new_key_id()
        return key_id, await self._proof(member, key_id)

    async def key(self, request: AnyRequest, key_id: str) -> dict[str, object]:
        """Return one key of the partner's; refuses with `key_not_found`."""
        for key in await self.keys(member_of(request).partner_id):
            if key["key_id"] == key_id:
                return key
        raise Refusal("key_not_found")

    async def rolling(self, request: AnyRequest, key_id: str, *, is_refused: bool = False) -> Html:
        """Return the page of rolling a key; `is_refused`: its end was set by something else."""
        key, status = await self.key(request, key_id), 409 if is_refused else 200
        shown = {"key": key, "overlaps": OVERLAPS, "is_refused": is_refused}
        return console_page(request, "key_roll.html", status, **shown)

    async def roll(self, request: AnyRequest, partner_id: str, key_id: str) -> Html:
        """Roll a key as the form says; repeat nothing but what the same person chose before."""
        overlap = OVERLAPS.get(form_of(request).get("overlap", ""))
        if overlap is None:
            raise invalid("overlap", f"expected one of {', '.join(OVERLAPS)}")
        await self.require_proof(request, key_id)
        cause = member_cause(request)
        issued = await first_time(self.commands.roll_key(partner_id, key_id, overlap, cause))
        if issued is not None:
            return _token(request, issued, issued.key_id, await self.key(request, key_id))
        if await self.commands.rolled(partner_id, key_id) == Roll(cause.actor, overlap):
            return _token(request, None, successor_id(partner_id, key_id))
        return await self.rolling(request, key_id, is_refused=True)

    async def require_proof(self, request: AnyRequest, key_id: str) -> None:
        """Raise ProofNeeded for a live key unless somebody proved lately who they are."""
        if (await self.key(request, key_id))["mode"] == "live":
            await self.proofs.require(request)

    async def keys(self, partner_id: str) -> list[dict[str, object]]:
        """Return a partner's keys, oldest first, with the names that its people gave them."""
        rows = {row["key_id"]: row for row in await self.partners.keys(partner_id)}
        known = (await self.commands.look(partner_id)).keys.items()
        return [self._shown(rows[key_id], key) for key_id, key in known if key_id in rows]

    def _shown(self, row: dict[str, Any], known: Key) -> dict[str, object]:
        state = "ended" if known.has_ended(self.clock()) else "ends" if known.ends_at else "valid"
        ends_at = moment(row["revoked_at"], "seconds")
        return {**row, "name": known.name, "state": state, "ends_at": ends_at}

    async def _proof(self, member: Member, key_id: str) -> str:
        """Return the proof that we drew a key's id, for this partner."""
        return (await self.secrets.get()).link_token(_PURPOSE, f"{member.partner_id}\0{key_id}")


async def first_time(issuing: Awaitable[IssuedKey]) -> IssuedKey | None:
    """Return the issued key; None where the form was sent before, or a key's end is set already."""
    try:
        return await issuing
    except Refusal as refusal:
        if refusal.code != "key_state":
            raise
        return None


def keys_router(pages: KeyPages) -> OneOffRouter:
    """Return the router of keys."""
    commands = pages.commands

    @get(opt=KEYS)
    async def keys(request: AnyRequest) -> Html:
        """List the keys, when each was created and last used."""
        return await pages.listed(request)

    @post(opt=KEYS)
    async def issue(request: AnyRequest) -> Html:
        """Issue a key, and show its token once."""
        form = form_of(request)
        try:
            check(KeyName, name=form.get("name", ""))
        except Refusal as refusal:
            return await pages.listed(request, form, messages_of(refusal))
        return _token(request, await pages.issue(request, form), form.get("key_id", ""))

    @get("/{key_id:str}/roll", opt=KEYS)
    async def choose(request: AnyRequest, key_id: PathText) -> Html:
        """Explain what rolling a key means, and ask how long the old one stays valid."""
        return await pages.rolling(request, key_id)

    @post("/{key_id:str}/roll", opt=KEYS)
    async def roll(request: AnyRequest, partner_id: PathText, key_id: PathText) -> Html:
        """Roll a key, and show the token of the new one once."""
        return await pages.roll(request, partner_id, key_id)

    @get("/{key_id:str}/revoke", opt=KEYS)
    async def confirm(request: AnyRequest, key_id: PathText) -> Html:
        """Explain what revoking a key means, and ask for confirmation."""
        return console_page(request, "key_revoke.html", key=await pages.key(request, key_id))

    @post("/{key_id:str}/revoke", opt=KEYS)
    async def revoke(request: AnyRequest, key_id: PathText) -> Html:
        """Revoke a key; a live one takes a fresh proof."""
        member = member_of(request)
        await pages.require_proof(request, key_id)
        await commands.revoke_key(member.partner_id, key_id, member_cause(request))
        return lead_to(f"{member.path}/keys")

    return OneOffRouter(
        f"{CONSOLE}/keys", route_handlers=[keys, issue, choose, roll, confirm, revoke]
    )


def _token(
    request: AnyRequest,
    issued: IssuedKey | None,
    key_id: str,
    old: dict[str, object] | None = None,
) -> Html:
    """Show a key's token; lead a form that was sent twice to the list, which names its key."""
    if issued is None:
        return lead_to(f"{member_of(request).path}/keys?again={quote(key_id, safe='')}")
    return console_page(request, "key_issued.html", issued=issued, old=old)
