"""`/console/{partner_id}/webhooks`: where a partner's events go, and how it fares."""

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from litestar import get, post
from litestar.handlers import HTTPRouteHandler

from projections.endpoints.reader import EndpointsReader
from projections.partner_events.projector import TYPES
from service.core.errors import Refusal, invalid
from service.facts.caller import Mode
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.ledger.database import Row
from service.ledger.service_keys import ServiceKeyStore
from service.pages.console.frame import ACTIVITY, CONSOLE, console_page
from service.pages.console.listing import asked_place, place
from service.pages.gate import member_cause, member_of
from service.pages.proof import Proofs
from service.pages.shell import faults_of, lead_to
from service.pages.site_map import Html, Page, PathText
from service.pages.visit import expected_version, form_of
from service.webhooks.commands import EndpointCommands
from service.webhooks.decisions import ENDPOINTS_MAX
from service.webhooks.queues import LISTED_MAX, Queues
from service.webhooks.signing import overlap_end, signing_now

WEBHOOKS: Final = {"page": Page("approved", "webhooks.nav", ACTIVITY)}

_PURPOSE: Final = "add-endpoint"
_POSITION_MAX: Final = 2**62
_DONE: Final = frozenset(
    {"added", "changed", "rotated", "tested", "replayed", "released", "enabled", "disabled"}
)
"""What a page can say was just done, in `?done=`."""

_Fields = Mapping[str, str]
_Endpoint = dict[str, Any]


@dataclass(frozen=True, slots=True)
class WebhookPages:
    """What the handlers share."""

    commands: EndpointCommands
    endpoints: EndpointsReader
    queues: Queues
    secrets: ServiceKeyStore
    proofs: Proofs

    async def listed(self, request: AnyRequest, refusal: Refusal | None = None) -> Html:
        """Return the list of endpoints, and a form whose endpoint's id is already drawn."""
        partner_id = member_of(request).partner_id
        endpoints = await self._all(partner_id)
        drawn = self.commands.new_endpoint_id()
        return console_page(
            request,
            "webhooks.html",
            400 if refusal else 200,
            endpoints=endpoints,
            endpoints_max=ENDPOINTS_MAX,
            types=list(TYPES.values()),
            chosen=_ticked(form_of(request)) if refusal else list(TYPES.values()),
            form=form_of(request) if refusal else {},
            faults=faults_of(refusal) if refusal else {},
            endpoint_id=drawn,
            proof=await self._proof(partner_id, drawn),
        )

    async def one(
        self, request: AnyRequest, endpoint_id: str, refusal: Refusal | None = None
    ) -> Html:
        """Return the page of an endpoint: its state, what is open, and what was delivered.

        A form that comes back for a fault is still about the version that its sender saw; one that
        is outdated is about the version that is shown beside it.
        """
        endpoint = await self.find(request, endpoint_id)
        partner_id = member_of(request).partner_id
        known = await self.commands.look(partner_id, endpoint_id)
        mode: Mode = endpoint["mode"]
        at = asked_place(request)
        before = (at[0], _position(at[1], "before")) if at else (None, None)
        waiting = await self.queues.open(mode, endpoint_id)
        aside = await self.queues.aside(mode, endpoint_id)
        delivered = await self.queues.delivered(mode, endpoint_id, before)
        positions = [row["position"] for row in (*waiting, *aside, *delivered)]
        last = delivered[-1] if len(delivered) == LISTED_MAX else None
        done = request.query_params.get("done")
        form = form_of(request) if refusal else {}
        is_outdated = refusal is not None and refusal.code == "form_outdated"
        is_back, all_types = "url" in form, list(TYPES.values())
        is_about_sent = is_back and not is_outdated
        return console_page(
            request,
            "webhook.html",
            409 if is_outdated else 400 if refusal else 200,
            endpoint=endpoint,
            known=known,
            version=expected_version(request) if is_about_sent else known.changed_version,
            is_outdated=is_outdated,
            open=waiting,
            aside=aside,
            delivered=delivered,
            subjects=await self.queues.about(mode, partner_id, positions),
            older=place((last["delivered_at"], str(last["position"]))) if last else None,
            is_first=at is None,
            now=(now := self.commands.clock()),
            overlap_end=overlap_end(endpoint["secret_rotated_at"], now),
            types=all_types,
            chosen=_ticked(form) if is_back else known.types or all_types,
            form=form,
            faults=faults_of(refusal) if refusal else {},
            done=done if done in _DONE else None,
        )

    async def find(self, request: AnyRequest, endpoint_id: str) -> _Endpoint:
        """Return one endpoint of the partner's; refuses with `endpoint_not_found`.

        Also where somebody wrote another mode than there are: such an endpoint has no queue.
        """
        for one in await self._all(member_of(request).partner_id):
            if one["endpoint_id"] == endpoint_id and one["mode"] in self.queues.databases:
                return one
        raise Refusal("endpoint_not_found")

    async def trusted(self, request: AnyRequest, endpoint_id: str) -> _Endpoint:
        """Return one; ask for a fresh proof where it is of live mode."""
        endpoint = await self.find(request, endpoint_id)
        if endpoint["mode"] == "live":
            await self.proofs.require(request)
        return endpoint

    async def is_trusted(self, request: AnyRequest, endpoint_id: str) -> bool:
        """Return whether there is one; ask for a fresh proof where it is of live mode."""
        try:
            await self.trusted(request, endpoint_id)
        except Refusal as refusal:
            if refusal.code != "endpoint_not_found":
                raise
            return False
        return True

    async def add(self, request: AnyRequest) -> str:
        """Add the endpoint that the form names, and return its id."""
        form, partner_id = form_of(request), member_of(request).partner_id
        endpoint_id, mode = form.get("endpoint_id", ""), form.get("mode")
        proof = await self._proof(partner_id, endpoint_id)
        if not hmac.compare_digest(form.get("proof", "").encode(), proof.encode()):
            raise invalid("url", "not from our form")
        if mode not in {"live", "test"}:
            raise invalid("mode", "expected live or test")
        if mode == "live":
            await self.proofs.require(request)
        known: Mode = "live" if mode == "live" else "test"
        await self.commands.add(
            partner_id,
            endpoint_id,
            known,
            form.get("url", "").strip(),
            _types(form),
            member_cause(request),
        )
        return endpoint_id

    async def _all(self, partner_id: str) -> list[_Endpoint]:
        rows = await self.endpoints.of(partner_id)
        states: dict[str, Any] = {}
        for mode in self.queues.databases:
            ids = [row["endpoint_id"] for row in rows if row["mode"] == mode]
            states |= await self.queues.states(mode, ids) if ids else {}
        return [_shown(row, states.get(row["endpoint_id"])) for row in rows]

    async def _proof(self, partner_id: str, endpoint_id: str) -> str:
        """Return the proof that we drew an endpoint's id, for this partner."""
        return (await self.secrets.get()).link_token(_PURPOSE, f"{partner_id}\0{endpoint_id}")


def webhooks_router(pages: WebhookPages) -> OneOffRouter:
    """Return the router of webhooks."""
    handlers = [*_looking(pages), *_changing(pages), *_removing(pages), *_sending(pages)]
    return OneOffRouter(f"{CONSOLE}/webhooks", route_handlers=handlers)


def _done(request: AnyRequest, endpoint_id: str, deed: str) -> Html:
    return lead_to(f"{member_of(request).path}/webhooks/{endpoint_id}?done={deed}")


def _looking(pages: WebhookPages) -> list[HTTPRouteHandler]:
    @get(opt=WEBHOOKS)
    async def listed(request: AnyRequest) -> Html:
        """List the endpoints, and how each stands."""
        return await pages.listed(request)

    @get("/{endpoint_id:str}", opt=WEBHOOKS)
    async def one(request: AnyRequest, endpoint_id: PathText) -> Html:
        """Show an endpoint, what is still to be delivered to it, and what was in thirty days."""
        return await pages.one(request, endpoint_id)

    @post("/{endpoint_id:str}/secret", opt=WEBHOOKS)
    async def secret(request: AnyRequest, endpoint_id: PathText) -> Html:
        """Show the signing secret and the public key, and those before while they sign, too."""
        endpoint = await pages.trusted(request, endpoint_id)
        keys = signing_now(
            await pages.secrets.get(),
            endpoint_id,
            endpoint["secret_version"],
            endpoint["secret_rotated_at"],
            pages.commands.clock(),
        )
        return console_page(request, "webhook_secret.html", endpoint=endpoint, keys=keys)

    return [listed, one, secret]


def _changing(pages: WebhookPages) -> list[HTTPRouteHandler]:
    commands = pages.commands

    @post(opt=WEBHOOKS)
    async def add(request: AnyRequest) -> Html:
        """Add an endpoint; a form that is sent twice adds one."""
        try:
            return _done(request, await pages.add(request), "added")
        except Refusal as refusal:
            if refusal.code != "validation_failed":
                raise
            return await pages.listed(request, refusal)

    @post("/{endpoint_id:str}", opt=WEBHOOKS)
    async def change(request: AnyRequest, partner_id: PathText, endpoint_id: PathText) -> Html:
        """Change where an endpoint is, and what it wants."""
        form, cause = form_of(request), member_cause(request)
        url, version = form.get("url", "").strip(), expected_version(request)
        await pages.trusted(request, endpoint_id)
        try:
            await commands.change(partner_id, endpoint_id, url, _types(form), cause, version)
        except Refusal as refusal:
            if refusal.code not in {"validation_failed", "form_outdated"}:
                raise
            return await pages.one(request, endpoint_id, refusal)
        return _done(request, endpoint_id, "changed")

    @post("/{endpoint_id:str}/rotate", opt=WEBHOOKS)
    async def rotate(request: AnyRequest, partner_id: PathText, endpoint_id: PathText) -> Html:
        """Replace the secret; a form that is sent twice replaces it once."""
        await pages.trusted(request, endpoint_id)
        version = _position(form_of(request).get("secret_version", ""), "secret_version")
        await commands.rotate(partner_id, endpoint_id, version, member_cause(request))
        return _done(request, endpoint_id, "rotated")

    return [add, change, rotate]


def _removing(pages: WebhookPages) -> list[HTTPRouteHandler]:
    @get("/{endpoint_id:str}/remove", opt=WEBHOOKS)
    async def confirm(request: AnyRequest, endpoint_id: PathText) -> Html:
        """Explain what removing an endpoint means, and ask for confirmation."""
        endpoint = await pages.find(request, endpoint_id)
        return console_page(request, "webhook_remove.html", endpoint=endpoint)

    @post("/{endpoint_id:str}/remove", opt=WEBHOOKS)
    async def remove(request: AnyRequest, partner_id: PathText, endpoint_id: PathText) -> Html:
        """Remove an endpoint; a form that is sent twice removes it once."""
        if await pages.is_trusted(request, endpoint_id):
            await pages.commands.remove(partner_id, endpoint_id, member_cause(request))
        return lead_to(f"{member_of(request).path}/webhooks")

    return [confirm, remove]


def _sending(pages: WebhookPages) -> list[HTTPRouteHandler]:
    commands, queues = pages.commands, pages.queues

    @post("/{endpoint_id:str}/test", opt=WEBHOOKS)
    async def test(request: AnyRequest, endpoint_id: PathText) -> Html:
        """Send a test event."""
        await queues.test((await pages.find(request, endpoint_id))["mode"], endpoint_id)
        return _done(request, endpoint_id, "tested")

    @post("/{endpoint_id:str}/replay", opt=WEBHOOKS)
    async def replay(request: AnyRequest, endpoint_id: PathText) -> Html:
        """Deliver again what was delivered from a position on."""
        endpoint = await pages.trusted(request, endpoint_id)
        try:
            position = _position(form_of(request).get("position", ""), "position")
            await queues.replay(endpoint["mode"], endpoint_id, position)
        except Refusal as refusal:
            if refusal.code != "validation_failed":
                raise
            return await pages.one(request, endpoint_id, refusal)
        return _done(request, endpoint_id, "replayed")

    @post("/{endpoint_id:str}/release", opt=WEBHOOKS)
    async def release(request: AnyRequest, endpoint_id: PathText) -> Html:
        """Deliver again what was set aside with an event, of the same claim or connection."""
        mode = (await pages.find(request, endpoint_id))["mode"]
        first = _position(form_of(request).get("first", ""), "first")
        await queues.release(mode, endpoint_id, first)
        return _done(request, endpoint_id, "released")

    @post("/{endpoint_id:str}/disable", opt=WEBHOOKS)
    async def disable(request: AnyRequest, partner_id: PathText, endpoint_id: PathText) -> Html:
        """Pause an endpoint."""
        await pages.trusted(request, endpoint_id)
        await commands.disable(partner_id, endpoint_id, "member", member_cause(request))
        return _done(request, endpoint_id, "disabled")

    @post("/{endpoint_id:str}/enable", opt=WEBHOOKS)
    async def enable(request: AnyRequest, partner_id: PathText, endpoint_id: PathText) -> Html:
        """Resume an endpoint where it stopped."""
        await pages.trusted(request, endpoint_id)
        await commands.enable(partner_id, endpoint_id, member_cause(request))
        return _done(request, endpoint_id, "enabled")

    return [test, replay, release, disable, enable]


def _shown(row: Row, queue: Row | None) -> _Endpoint:
    """Return an endpoint with its queue, and whether more waits for it than is queued."""
    types = row["types"].split()
    following = queue["next_types"] if queue else ()
    is_behind = any(not types or name in types for name in following)
    return {**row, "types": types, "queue": queue, "is_behind": is_behind}


def _ticked(form: _Fields) -> Sequence[str]:
    """Return the types that a form has ticked."""
    return tuple(name for name in TYPES.values() if form.get(name))


def _types(form: _Fields) -> Sequence[str]:
    """Return the types that an endpoint is to get: none where all are ticked, later ones, too.

    Refuses with `validation_failed` a form that has ticked none: it would get all.
    """
    ticked = _ticked(form)
    if not ticked:
        raise invalid("types", "choose at least one")
    return () if len(ticked) == len(TYPES) else ticked


def _position(text: str, name: str) -> int:
    """Return a whole number of a form or an address."""
    try:
        number = int(text) if len(text) <= len(str(_POSITION_MAX)) else _POSITION_MAX
    except ValueError:
        number = _POSITION_MAX
    if abs(number) >= _POSITION_MAX:
        raise invalid(name, "expected a whole number")
    return number
