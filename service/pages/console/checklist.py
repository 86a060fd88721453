"""`/console/{partner_id}/checklist`: what to try before going live, ticked off by the traffic.

Nothing is ticked by hand: the counts of calls, the keys and the partner's events decide.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from litestar import get

from service.facts.partners import Partner, partner_stream
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.ledger.ledger import Ledger
from service.pages.console.frame import CONSOLE, START, console_page
from service.pages.site_map import Html, Page, PathText
from service.partners.past import PAST
from service.request_log.reader import RequestsReader

CLAIMS: Final = "/v1/claims"
ONBOARDINGS: Final = "/v1/onboardings"
LINKS: Final = "/v1/connect-requests"
UPLOADS: Final = "/v1/documents/upload-url"

_SUCCESSES: Final = range(200, 300)
_OWN_FAULTS: Final = frozenset(range(400, 500)) - {HTTPStatus.TOO_MANY_REQUESTS}
_OUR_FAULTS: Final = range(500, 600)


class Facts(NamedTuple):
    """What is known of a partner; calls and documents are those of test mode.

    `seen` are rows of the query `seen`, `key_modes` the modes with a lasting key.
    """

    seen: Sequence[Any]
    key_modes: frozenset[str]
    settings_changed: bool
    has_documents: bool

    def answered(self, method: str, route: str, status: int) -> bool:
        """Return whether an endpoint has answered with a status."""
        wanted = (method, route, status)
        return any((row["method"], row["route"], row["status"]) == wanted for row in self.seen)

    def met(self, code: str) -> bool:
        """Return whether a call was refused with a code."""
        return any(row["code"] == code for row in self.seen)

    def recovered(self, statuses: Container[int], code: str | None = None) -> bool:
        """Return whether an endpoint succeeded after refusing with one of these, or the code."""
        return any(
            good["last_at"] > bad["first_at"]
            for bad in self.seen
            if bad["status"] in statuses or bad["code"] == code
            for good in self.seen
            if (good["method"], good["route"]) == (bad["method"], bad["route"])
            and good["status"] in _SUCCESSES
        )


class Item(NamedTuple):
    """A thing to do. Its texts are `checklist.<name>.title`, `.why` and `.how`."""

    name: str
    done: bool
    path: str
    """Where it is explained: under the console where it does not begin with a slash."""


def checklist(facts: Facts) -> list[Item]:
    """Return all items, in the order in which they are best done."""
    return [
        Item("test_key", "test" in facts.key_modes, "keys"),
        Item("onboarding", facts.answered("POST", ONBOARDINGS, HTTPStatus.CREATED), "tutorial"),
        Item("link", facts.answered("POST", LINKS, HTTPStatus.CREATED), "/docs"),
        Item("claim", facts.answered("POST", CLAIMS, HTTPStatus.CREATED), "tutorial"),
        Item("replay", facts.answered("POST", CLAIMS, HTTPStatus.OK), "tutorial"),
        Item("listing", facts.answered("GET", CLAIMS, HTTPStatus.OK), "tutorial"),
        Item("documents", facts.has_documents, "/docs"),
        Item("error", facts.recovered(_OWN_FAULTS), "errors?mode=test"),
        Item("retry", facts.recovered(_OUR_FAULTS, "claim_conflict"), "/docs"),
        Item("disconnected", facts.met("partner_disconnected"), "sandbox"),
        Item("limit", facts.recovered({HTTPStatus.TOO_MANY_REQUESTS}), "/docs#error-rate_limited"),
        Item("settings", facts.settings_changed, "settings"),
        Item("live_key", "live" in facts.key_modes, "keys"),
    ]


@dataclass(frozen=True, slots=True)
class Checklists:
    """Reads what a partner has shown. `test_calls` are those of test mode."""

    test_calls: RequestsReader
    accounts: Ledger

    async def of(self, partner_id: str) -> list[Item]:
        """Return a partner's checklist."""
        return checklist(await self.facts(partner_id))

    async def facts(self, partner_id: str) -> Facts:
        """Return what is known of a partner."""
        past = await self.accounts.fold(partner_stream(partner_id), PAST)
        return Facts(
            await self.test_calls.seen(partner_id),
            key_modes(past.partner),
            past.settings_changed,
            await self.test_calls.has_documents(partner_id),
        )


def checklist_router(checklists: Checklists) -> OneOffRouter:
    """Return the router of the checklist."""

    @get("/checklist", opt={"page": Page("member", "checklist.nav", START)})
    async def shown(request: AnyRequest, partner_id: PathText) -> Html:
        """Show what to try before going live."""
        items = await checklists.of(partner_id)
        done = sum(item.done for item in items)
        return console_page(request, "checklist.html", items=items, done=done)

    return OneOffRouter(CONSOLE, route_handlers=[shown])


def key_modes(partner: Partner) -> frozenset[str]:
    """Return the modes with a lasting key: one with an end was rolled or revoked."""
    keys = partner.keys.values()
    return frozenset(key.mode for key in keys if not (key.revoked or key.ends_at))
