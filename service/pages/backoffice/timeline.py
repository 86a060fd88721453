"""`/backoffice/timeline/<id>`: what happened to a thing, or by a request, from the ledger."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from litestar import Response, Router, get
from litestar.params import FromPath

from projections.activity.reader import Entry
from service.audit.history import history
from service.clock import timestamp
from service.ledger.ledger import Ledger
from service.pages.backoffice.frame import Desk, staff_of
from service.web.body import AnyRequest

ENTRIES_MAX: Final = 100
"""The newest events of a timeline; `claim-ledger audit history` tells more."""


def timeline_router(desk: Desk, ledgers: Sequence[Ledger]) -> Router:
    """Answer the router of timelines."""

    @get("/backoffice/timeline/{subject:str}", opt={"page": "staff"})
    async def timeline(request: AnyRequest, subject: FromPath[str]) -> Response[bytes]:
        await staff_of(request, desk.staff)
        found = await history(ledgers, subject, ENTRIES_MAX)
        if not found.entries:
            return desk.unknown(request, subject)
        return desk.page(
            request,
            "",
            "timeline.html",
            subject=subject,
            is_cut=found.is_cut,
            limit=ENTRIES_MAX,
            entries=[(entry, _at(entry), _facts(entry)) for entry in found.entries],
        )

    return Router("/", route_handlers=[timeline])


def _at(entry: Entry) -> str:
    """Answer when it happened, to the millisecond: seconds tell what came of what."""
    return timestamp(entry.meta.at) if entry.meta else "-"


def _facts(entry: Entry) -> list[tuple[str, str]]:
    data: Mapping[str, Any] = entry.data or {}
    return [(name, _text(value)) for name, value in data.items()]


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
