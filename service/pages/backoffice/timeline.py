"""`/backoffice/timeline/<id>`: what happened to a thing, or by a request, from the ledger."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from litestar import get
from markupsafe import escape

from projections.activity.reader import TimelineEntry
from service.core.unseen import visible
from service.evidence.replay.history import NUMBERED, SECRET, history, older_than
from service.facts.catalogue import ACCOUNTS, PARTNER_LEDGER
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.ledger.ledger import Ledger
from service.pages.backoffice.frame import STAFF, IdUnknown, backoffice_page, ledger_place
from service.pages.backoffice.search import person_bits
from service.pages.formats import NOTHING, moment
from service.pages.site_map import Html, PathText

ENTRIES_MAX: Final = 36
"""Events of a page, so that one full of the longest values stays under 100 kB."""

VALUE_BYTES_MAX: Final = 200
"""What is shown of a value, as HTML; `claim-ledger audit history` shows the whole."""


_ID: Final = re.compile(r"[a-z]{2,4}_[0-9a-z]{26}")
_MEANINGS: Final = {
    topic: (event.__doc__ or topic).partition("\n")[0]
    for topic, event in (ACCOUNTS | PARTNER_LEDGER).items()
}
"""What each event means, as the catalogue has it (docs/events.md)."""


class Fact(NamedTuple):
    """A field of an event: `is_cut` where `value` is its beginning, `is_id` where it leads on."""

    name: str
    value: str
    is_cut: bool
    is_id: bool


def timeline_router(ledgers: Sequence[Ledger]) -> OneOffRouter:
    """Return the router of timelines."""
    names = [ledger.name for ledger in ledgers]

    @get("/timeline/{subject:str}", opt=STAFF)
    async def timeline(request: AnyRequest, subject: PathText) -> Html:
        """Show what happened to a thing, or by a request."""
        before = _before(request, names)
        only = request.query_params.get("ledger")
        chosen = [ledger for ledger in ledgers if only in {None, ledger.name}] or ledgers
        found = await history(chosen, subject, ENTRIES_MAX, before)
        # Whoever signs in has an id; events have it once they add a passkey, or change something.
        is_whole = not before and len(chosen) == len(ledgers)
        if not found.entries and is_whole and person_bits(subject) is None:
            raise IdUnknown(subject)
        older = older_than(found.entries, before) if found.is_cut else {}
        return backoffice_page(
            request,
            "timeline.html",
            subject=subject,
            is_first=not before,
            older=".".join(str(older.get(name, "")) for name in names) if older else "",
            ledgers=names,
            only=only if len(chosen) < len(ledgers) else None,
            entries=[_entry(entry) for entry in reversed(found.entries)],
        )

    return OneOffRouter("/", route_handlers=[timeline])


def _before(request: AnyRequest, names: Sequence[str]) -> Mapping[str, int]:
    """Return where a page begins, by ledger; empty for the first page and a malformed place.

    The address has a position for each ledger, in their order, separated by dots; a ledger that
    earlier pages did not reach has none.
    """
    texts = request.query_params.get("before", "").split(".")
    if len(texts) != len(names):
        return {}
    places = {
        name: ledger_place(text, NUMBERED) for name, text in zip(names, texts, strict=True) if text
    }
    known = {name: place for name, place in places.items() if place is not None}
    return known if len(known) == len(places) else {}


def _entry(entry: TimelineEntry) -> tuple[TimelineEntry, str, str, list[Fact]]:
    """Return an entry, its time, what it means and its facts.

    The time is to the millisecond, to show what led to what.
    """
    data: Mapping[str, Any] = entry.data or {}
    facts = [_fact(name, value) for name, value in data.items() if name not in SECRET]
    at = moment(entry.meta.at, "milliseconds") if entry.meta else NOTHING
    return entry, at, _MEANINGS.get(entry.topic, entry.topic), facts


def _fact(name: str, value: object) -> Fact:
    text, is_cut = _shown(value)
    return Fact(name, text, is_cut, is_id=_ID.fullmatch(text) is not None)


def _shown(value: object) -> tuple[str, bool]:
    """Return what is shown of a value, and whether it is cut."""
    text = visible(value if isinstance(value, str) else msgspec.json.encode(value).decode())
    size = 0
    for end, character in enumerate(text):
        size += len(escape(character).encode())
        if size > VALUE_BYTES_MAX:
            return text[:end], True
    return text, False
