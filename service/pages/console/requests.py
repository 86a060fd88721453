"""`/console/{partner_id}/requests`: the calls of thirty days, and their errors by code."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from litestar import get

from projections.activity.reader import ActivityReader, TimelineEntry
from projections.partners.reader import PartnersReader
from service.core.clock import timestamp
from service.core.errors import ERRORS, Refusal, invalid
from service.facts.caller import Mode
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.ledger.database import Row
from service.pages.console.frame import ACTIVITY, CONSOLE, console_page
from service.pages.console.listing import asked, asked_moment, asked_place, mode_of, place
from service.pages.gate import member_of
from service.pages.shell import lead_to
from service.pages.site_map import Html, Page, PathText
from service.request_log.outcome import read_outcome
from service.request_log.reader import Filter, RequestsReader

REQUESTS = {"page": Page("approved", "calls.nav", ACTIVITY)}
EVENTS_MAX: Final = 100
PATIENCE_SECONDS: Final = 1.5
"""Longer than reading a call's events ever takes, unless the read model is far behind."""


def requests_router(
    calls: Mapping[Mode, RequestsReader],
    activity: Mapping[Mode, ActivityReader],
    partners: PartnersReader,
) -> OneOffRouter:
    """Return the router of a partner's calls. It shows no body, secret or personal data."""

    async def opened(request: AnyRequest, partner_id: str, request_id: str) -> Html:
        for mode, reader in calls.items():
            if await reader.one(partner_id, request_id) is not None:
                path = member_of(request).path
                return lead_to(f"{path}/requests/{request_id}?mode={mode}")
        raise Refusal("request_not_found")

    @get("/requests", opt=REQUESTS)
    async def listed(request: AnyRequest, partner_id: PathText) -> Html:
        """List the calls of thirty days, with filters."""
        mode, wanted = mode_of(request), _wanted(request)
        if (request_id := asked(request, "request_id")) is not None:
            return await opened(request, partner_id, request_id.strip())
        until, before = asked_moment(request, "until"), asked_place(request)
        # No request id comes before the empty one: calls of the moment itself are left out.
        found = await calls[mode].page(partner_id, wanted, before or (until and (until, "")))
        seen = await calls[mode].seen(partner_id)
        keys = await partners.keys(partner_id)
        return console_page(
            request,
            "requests.html",
            mode=mode,
            wanted=wanted,
            calls=[shown(row) for row in found.calls],
            looked_to=found.looked_to,
            until="" if until is None else f"{until:%Y-%m-%dT%H:%M:%S}",
            kept=_query(wanted._replace(key_id=None), until),  # a key is one mode's alone
            newest=_query(wanted, None, mode=mode),
            older=found.before and _query(wanted, until, mode=mode, before=place(found.before)),
            codes=_choices({row["code"] for row in seen} - {""}),
            endpoints=_choices({f"{row['method']} {row['route']}" for row in seen}),
            keys=_choices({row["key_id"] for row in keys if row["mode"] == mode}),
            is_first="before" not in request.query_params,
        )

    @get("/errors", opt=REQUESTS)
    async def errors(request: AnyRequest, partner_id: PathText) -> Html:
        """List the refused calls by code, and what to do about each."""
        mode = mode_of(request)
        groups = by_code(await calls[mode].seen(partner_id))
        return console_page(request, "errors.html", mode=mode, groups=groups)

    @get("/requests/{request_id:str}", opt=REQUESTS)
    async def one(request: AnyRequest, partner_id: PathText, request_id: PathText) -> Html:
        """Show one call, and the events that it caused."""
        mode = mode_of(request)
        row = None if "\0" in request_id else await calls[mode].one(partner_id, request_id)
        if row is None:
            raise Refusal("request_not_found")
        return console_page(
            request,
            "request.html",
            mode=mode,
            call=shown(row),
            error=ERRORS.get(row["code"]),
            outcome=read_outcome(row["outcome"]),
            events=await caused(activity[mode], partner_id, request_id),
        )

    return OneOffRouter(CONSOLE, route_handlers=[listed, errors, one])


async def caused(
    activity: ActivityReader, partner_id: str, request_id: str
) -> list[TimelineEntry] | None:
    """Return the events of a partner's own request; None where that takes too long just now.

    Only what the partner itself caused is shown, whatever else may name the request.
    """
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            entries = await activity.timeline(request_id, EVENTS_MAX)
    except TimeoutError:
        return None
    return [
        entry
        for entry in entries
        if entry.is_ours
        and entry.meta is not None
        and entry.meta.request_id == request_id
        and entry.meta.actor.startswith(f"partner:{partner_id}/")
    ]


def shown(row: Row) -> dict[str, Any]:
    """Return a call as the templates take it."""
    good = row["status"] < 400  # noqa: PLR2004 - HTTP's boundary
    return {
        **row,
        "duration": f"{row['duration_ms']:,.1f}",
        "tone": "good" if good else "bad",
    }


def by_code(seen: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the errors by code, most frequent first, with their row of the reference."""
    groups: dict[str, dict[str, Any]] = {}
    for row in seen:
        if row["code"]:
            new = {"code": row["code"], "status": row["status"], "requests": 0, "endpoints": set()}
            group = groups.setdefault(row["code"], new)
            group["requests"] += row["requests"]
            group["endpoints"].add(f"{row['method']} {row['route']}")
            group["last_at"] = max(row["last_at"], group.get("last_at", row["last_at"]))
            group["error"] = ERRORS.get(row["code"])
    return sorted(groups.values(), key=lambda group: (-group["requests"], group["code"]))


def _choices(values: set[str]) -> list[tuple[str, str]]:
    return [(value, value) for value in sorted(values)]


def _wanted(request: AnyRequest) -> Filter:
    status_class = asked(request, "class")
    if status_class not in {None, "2", "4", "5"}:
        raise invalid("class", "expected 2, 4 or 5")
    return Filter(
        code=asked(request, "code"),
        key_id=asked(request, "key"),
        endpoint=asked(request, "endpoint"),
        status_class=None if status_class is None else int(status_class),
    )


def _query(wanted: Filter, until: datetime | None, **more: str | None) -> str:
    """Return the query string of the same filter, with `more`."""
    given = {
        "code": wanted.code,
        "key": wanted.key_id,
        "endpoint": wanted.endpoint,
        "class": wanted.status_class,
        "until": None if until is None else timestamp(until),
    }
    return urlencode({name: value for name, value in (more | given).items() if value is not None})
