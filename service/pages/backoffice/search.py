"""`/backoffice`: one field that finds anything, and what waits for the team.

By an id or its beginning, by a partner's name or reference, and people by their address.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

from litestar import get, post

from service.core.ids import CROCKFORD
from service.evidence.replay.history import history
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.ledger.database import Database
from service.ledger.ledger import Ledger
from service.ledger.sql import Sql, queries
from service.pages.backoffice.frame import BackofficeContext, backoffice_page
from service.pages.backoffice.work_queue import work_queue
from service.pages.shell import lead_to
from service.pages.site_map import Html, Page
from service.pages.visit import form_of
from service.people.sessions import Person

_SQL = queries("service.pages.backoffice")

QUERY_CHARACTERS_MAX: Final = 254
PERSON_DIGITS: Final = 26
HITS_MAX: Final = 20
"""Of each kind, where a search is for less than an id."""
PARTNERS_MAX: Final = 2_000
"""Newest partners whose references are looked through."""
SEARCH: Final = {"page": Page("staff", "backoffice.nav.search")}
OWN_PAGE: Final = {"claim": "claims", "entity": "entities", "partner": "partners"}
"""Kinds of things that have a page of their own, and where."""


_PART: Final = re.compile(r"[a-z]{2,4}_[0-9a-z]{1,26}")
_BEYOND: Final = "~"
"""Sorts behind every character of an id."""


class Hit(NamedTuple):
    """A search result; the ids below are those of what it belongs to."""

    kind: str
    id: str
    state: str
    ledger: str
    partner_id: str | None = None
    entity_id: str | None = None
    claim_id: str | None = None
    name: str | None = None

    @property
    def path(self) -> str | None:
        """The path of its own page, if it has one."""
        place = OWN_PAGE.get(self.kind)
        return f"/backoffice/{place}/{self.id}" if place else None


def search_router(context: BackofficeContext, ledgers: Sequence[Ledger]) -> OneOffRouter:
    """Return the router of the search.

    The query is posted: email addresses stay out of URLs, which browsers and proxies keep.
    """

    @get(opt=SEARCH)
    async def ask(request: AnyRequest) -> Html:
        """Search by any id or email address."""
        return await shown(request, "", None)

    @post(opt=SEARCH)
    async def find(request: AnyRequest) -> Html:
        """Show what was found, or lead to it."""
        sought = form_of(request).get("sought", "")
        if not sought or len(sought) > QUERY_CHARACTERS_MAX:
            return await shown(request, sought[:QUERY_CHARACTERS_MAX], None, 400)
        if "@" in sought:
            address_hash = (await context.secrets.get()).lookup_email(sought)
            person_id = Person(sought, address_hash, "").person_id
            hits = await _of_address(context, sought, address_hash)
            return await shown(request, sought, hits, person_id=person_id)
        an_id = sought.lower()  # as our ids are, whatever a mail program or a phone made of them
        hits = await _of_id(context, an_id)
        if len(hits) == 1 and hits[0].path:
            return lead_to(hits[0].path)
        if not hits and (await history(ledgers, an_id, 1)).entries:
            return lead_to(f"/backoffice/timeline/{quote(an_id, safe='')}")
        hits = hits or [
            *await _of_part(context, an_id),
            *await _of_name(context, sought),
            *await _of_reference(context, sought),
        ]
        return await shown(request, sought, hits)

    async def shown(
        request: AnyRequest,
        sought: str,
        hits: list[Hit] | None,
        status: int = 200,
        person_id: str | None = None,
    ) -> Html:
        return backoffice_page(
            request,
            "search.html",
            status,
            sought=sought,
            hits=hits,
            person_id=person_id,
            queue=await work_queue(context),
        )

    return OneOffRouter("/", route_handlers=[ask, find])


async def _of_id(context: BackofficeContext, an_id: str) -> list[Hit]:
    bits = person_bits(an_id)
    if bits is not None:
        # Customers act under their business's id, and seldom under this one: asked last.
        return await _hits(
            "accounts", context.accounts, _SQL.accounts_by_person, bits
        ) or await _hits("live", context.modes["live"].database, _SQL.ledger_by_person, bits)
    hits = await _hits("accounts", context.accounts, _SQL.accounts_by_id, an_id)
    for mode, of_mode in context.modes.items():
        hits += await _hits(mode, of_mode.database, _SQL.ledger_by_id, an_id)
    return hits


async def _of_part(context: BackofficeContext, part: str) -> list[Hit]:
    """Return what has an id that begins so, prefix and a character at least."""
    if not _PART.fullmatch(part):
        return []
    values = (part, part + _BEYOND, HITS_MAX)
    hits = await _hits("accounts", context.accounts, _SQL.accounts_by_part, *values)
    for mode, of_mode in context.modes.items():
        hits += await _hits(mode, of_mode.database, _SQL.ledger_by_part, *values)
    return hits


async def _of_name(context: BackofficeContext, text: str) -> list[Hit]:
    """Return the partners whose name has a text in it."""
    literal = re.sub(r"([\\%_])", r"\\\1", text)
    return await _hits("accounts", context.accounts, _SQL.accounts_by_name, literal, HITS_MAX)


async def _of_reference(context: BackofficeContext, reference: str) -> list[Hit]:
    """Return the claims and links that partners made under a reference of theirs."""
    rows = await context.accounts.reads.fetch(_SQL.partner_ids, PARTNERS_MAX)
    partners = [row["partner_id"] for row in rows]
    hits: list[Hit] = []
    for mode, of_mode in context.modes.items():
        values = (reference, partners, HITS_MAX)
        hits += await _hits(mode, of_mode.database, _SQL.ledger_by_reference, *values)
    return hits


async def _of_address(context: BackofficeContext, email: str, address_hash: str) -> list[Hit]:
    keyed = bytes.fromhex(address_hash)
    hits = await _hits("accounts", context.accounts, _SQL.accounts_by_address, email, keyed)
    for mode, of_mode in context.modes.items():
        hits += await _hits(mode, of_mode.database, _SQL.ledger_by_address, keyed)
    return hits


async def _hits(ledger: str, database: Database, query: Sql, *values: object) -> list[Hit]:
    return [Hit(ledger=ledger, **dict(row)) for row in await database.reads.fetch(query, *values)]


def person_bits(person_id: str) -> bytes | None:
    """Return the 128 bits of a person id, `per_` and 26 characters; None for any other."""
    prefix, _, digits = person_id.partition("_")
    value = 0
    if prefix != "per" or len(digits) != PERSON_DIGITS or not set(digits) <= set(CROCKFORD):
        return None
    for digit in digits:
        value = value << 5 | CROCKFORD.index(digit)
    return value.to_bytes(17, "big")[1:]
