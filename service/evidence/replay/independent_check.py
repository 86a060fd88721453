"""Holding the replayed claim list against that of the independent software."""

import asyncio
from collections.abc import AsyncIterable, Callable
from typing import Any, NamedTuple

from service.evidence.replay.independent import Claims, PlainMapper, claim_list, numbered
from service.evidence.replay.independent_recorder import stock_recorder
from service.evidence.replay.replay import Wanted
from service.facts import catalogue
from service.ledger.database import Database

SHOWN_MAX = 20
"""How many of the claims that differ are kept to be shown."""


class Comparison(NamedTuple):
    """How many claims differ, and the first of them as both have them; None: not at all."""

    differences: int
    first: list[dict[str, Any]]


async def independent_claims(
    database: Database, position: int, wanted: Wanted, advance: Callable[[int], object]
) -> Claims:
    """Return the claim list as of a position, without ours having part in it.

    Raises:
        LedgerUnavailable: PostgreSQL does not answer the library's driver.
        LogFault: the log cannot be replayed.

    """

    def read() -> Claims:
        mapper = PlainMapper(catalogue.PARTNER_LEDGER)
        with stock_recorder(url, database.schema, role) as recorder:
            stored = numbered(recorder, position, catalogue.PARTNER_LEDGER, advance)
            return claim_list(stored, mapper)

    url, role = database.address
    asked = {name: value for name, value in wanted._asdict().items() if value is not None}
    return {
        claim_id: claim
        for claim_id, claim in (await asyncio.to_thread(read)).items()
        if all(claim[name] == value for name, value in asked.items())
    }


async def compare(ours: AsyncIterable[dict[str, Any]], theirs: Claims) -> Comparison:
    """Hold one list against the other, claim by claim; their order is not compared."""
    count, first, left = 0, list[dict[str, Any]](), dict(theirs)
    async for claim in ours:
        other = left.pop(claim["claim_id"], None)
        if other != claim:
            count += 1
            first.append({"claim_id": claim["claim_id"], "ours": claim, "independent": other})
            del first[SHOWN_MAX:]
    only_theirs = [
        {"claim_id": claim_id, "ours": None, "independent": claim}
        for claim_id, claim in left.items()
    ]
    return Comparison(count + len(only_theirs), (first + only_theirs)[:SHOWN_MAX])
