"""`/backoffice/timeline/<id>`: what happened to a thing, or by a request, from the ledger."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from litestar import get
from markupsafe import escape

from projections.activity.reader import BEYOND_MAX, TimelineEntry, TimelineFilter
from service.core.invisible_characters import visible
from service.evidence.replay.history import NUMBERED, SECRET, history, older_than
from service.facts.catalogue import ACCOUNTS, PARTNER_LEDGER
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.ledger.ledger import Ledger
from service.pages.backoffice.frame import STAFF, IdUnknown, backoffice_page, ledger_place
from service.pages.backoffice.search import person_bits
from service.pages.console.listing import asked_one_of, query_of
from service.pages.formats import NOTHING, moment
from service.pages.site_map import Html, PathText
from service.pages.words import text

ENTRIES_MAX: Final = 32
"""Events of a page, so that one full of the longest values stays under 100 kB."""

VALUE_BYTES_MAX: Final = 200
"""What is shown of a value, as HTML; `claim-ledger audit history` shows the whole."""


_ID: Final = re.compile(r"[a-z]{2,4}_[0-9a-z]{26}")
_MEANINGS: Final = {
    topic: (event.__doc__ or topic).partition("\n")[0].partition(". ")[0].rstrip(".") + "."
    for topic, event in (ACCOUNTS | PARTNER_LEDGER).items()
}
"""What each event means: the first sentence of the catalogue (docs/events.md)."""


ACTORS: Final = ("partner", "member", "staff", "customer", "system")
"""Who acts: an actor's name in events begins with one of them."""

_OWN_PAGE: Final = {"clm": "claims", "ent": "entities", "ptn": "partners", "per": "people"}
"""Where things have a page of their own, by the beginning of their ids."""


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
        wanted = TimelineFilter(
            asked_one_of(request, "kind", list(_MEANINGS)), asked_one_of(request, "by", ACTORS)
        )
        only = asked_one_of(request, "ledger", names)
        chosen = [ledger for ledger in ledgers if only in {None, ledger.name}]
        found = await history(chosen, subject, ENTRIES_MAX, before, wanted, BEYOND_MAX)
        kept = query_of(kind=wanted.topic, by=wanted.by, ledger=only)
        # Whoever signs in has an id; events have it once they add a passkey, or change something.
        if not (found.entries or found.is_cut or before or kept) and person_bits(subject) is None:
            raise IdUnknown(subject)
        older = older_than(found, before) if found.is_cut else {}
        return backoffice_page(
            request,
            "timeline.html",
            subject=subject,
            is_first=not before,
            own_page=_own_page(subject),
            kinds=[(topic, _named(topic)) for topic in sorted(_MEANINGS)],
            actors=[(who, text(f"backoffice.actor.{who}")) for who in ACTORS],
            wanted=wanted,
            kept=kept,
            older=".".join(str(older.get(name, "")) for name in names) if older else "",
            ledgers=[(name, name) for name in names],
            only=only,
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


def _entry(
    entry: TimelineEntry,
) -> tuple[TimelineEntry, str, str, list[Fact], list[tuple[str, bool]]]:
    """Return an entry, its time, what it means, its facts, and who it names.

    The time is to the millisecond, to show what led to what.
    """
    data: Mapping[str, Any] = entry.data or {}
    facts = [_fact(name, value) for name, value in data.items() if name not in SECRET]
    at = moment(entry.meta.at, "milliseconds") if entry.meta else NOTHING
    who = _actor(entry.meta.actor) if entry.meta else []
    return entry, at, _MEANINGS.get(entry.topic, entry.topic), facts, who


def _fact(name: str, value: object) -> Fact:
    text, is_cut = _shown(value)
    return Fact(name, text, is_cut, is_id=_ID.fullmatch(text) is not None)


def _shown(value: object) -> tuple[str, bool]:
    """Return what is shown of a value, and whether it is cut.

    No character takes less than a byte: what is longer is cut before anybody looks for marks in it.
    """
    whole = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text, size = visible(whole[: VALUE_BYTES_MAX + 1]), 0
    for end, character in enumerate(text):
        size += len(escape(character).encode())
        if size > VALUE_BYTES_MAX:
            return text[:end], True
    return text, False


def _named(topic: str) -> str:
    """Return a kind of event in words: `ClaimStageChanged` is `Claim stage changed`."""
    return re.sub(r"(?<=[a-z])[A-Z]", lambda found: f" {found[0].lower()}", topic)


def _own_page(subject: str) -> str | None:
    """Return the path of a thing's own page, if it has one."""
    place = _OWN_PAGE.get(subject.partition("_")[0])
    return f"/backoffice/{place}/{subject}" if place and _ID.fullmatch(subject) else None


def _actor(actor: str) -> list[tuple[str, bool]]:
    """Return the parts of an actor's name, each with whether it is an id that leads on."""
    parts = re.split("([:/])", actor)
    return [(part, _ID.fullmatch(part) is not None) for part in parts]
