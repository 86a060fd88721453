"""`/console/{partner_id}/requests`: the calls of thirty days, and their errors by code."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from litestar import Response, Router, get
from litestar.params import FromPath

from projections.partners.reader import PartnersReader
from service.caller import Mode
from service.clock import timestamp
from service.errors import ERRORS, Refusal, invalid
from service.ledger.database import Row
from service.pages.console.caused import Timeline, caused
from service.pages.console.frame import MemberOf, console_page
from service.pages.console.listing import asked, asked_place, mode_of, place
from service.requests.reader import Filter, RequestsReader
from service.web.body import AnyRequest

CLASSES = {"2": 2, "4": 4, "5": 5}


def requests_router(
    member_of: MemberOf,
    calls: Mapping[Mode, RequestsReader],
    timelines: Mapping[Mode, Timeline],
    partners: PartnersReader,
) -> Router:
    """Answer the router of a partner's calls. Never a body, a secret or personal data."""

    @get("/console/{partner_id:str}/requests", opt={"page": "member"})
    async def listed(request: AnyRequest, partner_id: FromPath[str]) -> Response[bytes]:
        member = await member_of(request, partner_id)
        mode, wanted = mode_of(request), _wanted(request)
        found = await calls[mode].page(partner_id, wanted, asked_place(request))
        seen = await calls[mode].seen(partner_id)
        keys = await partners.keys(partner_id)
        return console_page(
            request,
            member,
            "requests",
            "console/requests.html",
            mode=mode,
            wanted=wanted,
            calls=[shown(row) for row in found.calls],
            older=_query(mode, wanted, place(found.before)),
            has_older=found.before is not None,
            codes=_choices({row["code"] for row in seen} - {""}),
            endpoints=_choices({f"{row['method']} {row['route']}" for row in seen}),
            keys=_choices({row["key_id"] for row in keys if row["mode"] == mode}),
            is_first="before" not in request.query_params,
        )

    @get("/console/{partner_id:str}/errors", opt={"page": "member"})
    async def errors(request: AnyRequest, partner_id: FromPath[str]) -> Response[bytes]:
        member = await member_of(request, partner_id)
        mode = mode_of(request)
        groups = by_code(await calls[mode].seen(partner_id))
        return console_page(
            request, member, "requests", "console/errors.html", mode=mode, groups=groups
        )

    @get("/console/{partner_id:str}/requests/{request_id:str}", opt={"page": "member"})
    async def one(
        request: AnyRequest, partner_id: FromPath[str], request_id: FromPath[str]
    ) -> Response[bytes]:
        member = await member_of(request, partner_id)
        mode = mode_of(request)
        row = None if "\0" in request_id else await calls[mode].one(partner_id, request_id)
        if row is None:
            raise Refusal("request_not_found")
        return console_page(
            request,
            member,
            "requests",
            "console/request.html",
            mode=mode,
            call=shown(row),
            error=ERRORS.get(row["code"]),
            events=await caused(timelines[mode], partner_id, request_id),
        )

    return Router("/", route_handlers=[listed, errors, one])


def shown(row: Row) -> dict[str, Any]:
    """Answer a call as the templates take it; `at` is what logs have, to the millisecond."""
    good = row["status"] < 400  # noqa: PLR2004 - HTTP's boundary
    return {
        **row,
        "at": timestamp(row["at"]),
        "day": f"{row['at']:%Y-%m-%d}",
        "time": timestamp(row["at"])[11:-1],
        "duration": f"{row['duration_ms']:.1f}",
        "tone": "good" if good else "bad",
    }


def by_code(seen: Sequence[Row]) -> list[dict[str, Any]]:
    """Answer the errors by code, most often first, with what the reference says of each."""
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
    if status_class is not None and status_class not in CLASSES:
        raise invalid("class", "expected 2, 4 or 5")
    return Filter(
        code=asked(request, "code"),
        key_id=asked(request, "key"),
        endpoint=asked(request, "endpoint"),
        status_class=None if status_class is None else CLASSES[status_class],
    )


def _query(mode: Mode, wanted: Filter, before: str | None) -> str:
    """Answer the query of the next page: what was asked for stays."""
    given = {
        "mode": mode,
        "code": wanted.code,
        "key": wanted.key_id,
        "endpoint": wanted.endpoint,
        "class": wanted.status_class,
        "before": before,
    }
    return urlencode({name: value for name, value in given.items() if value is not None})
