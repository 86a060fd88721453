"""`/console/{partner_id}`: how a partner's integration is doing, or the state of its review."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, NamedTuple

from litestar import get

from projections.claim_list.partners_claims import COUNTED_MAX, PartnersClaims
from service.core.clock import Clock
from service.facts.caller import Mode
from service.facts.claims import STAGES
from service.facts.partners import Partner
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.ledger.database import Row
from service.pages.console.checklist import Checklists, Item, key_modes
from service.pages.console.frame import CONSOLE, START, console_page
from service.pages.console.listing import asked
from service.pages.console.requests import by_code, shown
from service.pages.console.usage import SPANS, read_usage
from service.pages.gate import member_of
from service.pages.site_map import Html, Page, PathText
from service.partners.commands import PartnerCommands
from service.request_log.reader import Filter, RequestsReader

LATEST: Final = 6
CODES_MAX: Final = 4
_WHOLE: Final = 100


class Today(NamedTuple):
    """The calls of today (UTC), and the refused ones among them by code, most frequent first."""

    calls: int
    errors: int
    codes: Sequence[Mapping[str, Any]]


class LimitUse(NamedTuple):
    """The busiest minute of the last hour, of both modes, against the limit of a minute."""

    peak: int
    limit: int
    refused: int

    @property
    def share(self) -> int:
        """In per cent of the limit."""
        return min(_WHOLE * self.peak // self.limit, _WHOLE)


@dataclass(frozen=True, slots=True)
class OverviewPage:
    """What the overview reads; `limit` is that of requests a minute."""

    partners: PartnerCommands
    claims: Mapping[Mode, PartnersClaims]
    calls: Mapping[Mode, RequestsReader]
    checklists: Checklists
    limit: int
    clock: Clock

    async def read(self, partner_id: str, mode: Mode) -> dict[str, Any]:
        """Return what the page shows of an approved partner."""
        counts = await self.claims[mode].counts(partner_id, STAGES)
        latest = await self.calls[mode].page(partner_id, Filter(), None, LATEST)
        hour = (await read_usage(self.calls, partner_id, SPANS["hour"], self.clock())).sums()
        items = await self.checklists.of(partner_id)
        return {
            "counts": counts,
            "most": max(counts.values()),
            "counted_max": COUNTED_MAX,
            "today": today(await self.calls[mode].seen(partner_id, timedelta())),
            "use": LimitUse(hour["peak"], self.limit, hour["limited"]),
            "items": items,
            "next_item": _next(items),
            "calls": [shown(row) for row in latest.calls],
        }

    def mode_of(self, request: AnyRequest, partner: Partner) -> Mode:
        """Return the mode that is asked for; else live once there is a live key."""
        given = asked(request, "mode")
        if given is None:
            return "live" if "live" in key_modes(partner) else "test"
        return "test" if given == "test" else "live"


def today(seen: Sequence[Row]) -> Today:
    """Return the figures of a day's counts."""
    groups = by_code(seen)
    errors = sum(group["requests"] for group in groups)
    return Today(sum(row["requests"] for row in seen), errors, groups[:CODES_MAX])


def overview_router(overview: OverviewPage) -> OneOffRouter:
    """Return the router of the overview."""

    @get(opt={"page": Page("member", "console.nav.overview", START)})
    async def shown_overview(request: AnyRequest, partner_id: PathText) -> Html:
        """Show claims, errors, use of the limit and what comes next, or the state of the review."""
        partner = await overview.partners.look(partner_id)
        if member_of(request).status != "approved":
            return console_page(request, "review.html", partner=partner)
        mode = overview.mode_of(request, partner)
        found = await overview.read(partner_id, mode)
        return console_page(request, "overview.html", partner=partner, mode=mode, **found)

    return OneOffRouter(CONSOLE, route_handlers=[shown_overview])


def _next(items: Sequence[Item]) -> Item | None:
    return next((item for item in items if not item.done), None)
