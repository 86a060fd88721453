"""Comparing the replayed claim list with that of the independent software."""

import asyncio
from collections.abc import AsyncIterable, Callable
from typing import Any, NamedTuple

from service.evidence.replay.independent import Claims, PlainMapper, claim_list, numbered
from service.evidence.replay.independent_recorder import stock_recorder
from service.evidence.replay.wanted import Wanted
from service.facts import catalogue
from service.ledger.database import Database

SHOWN_MAX = 20
"""How many differing claims are kept to be shown."""


class Comparison(NamedTuple):
    """How many claims differ, and the first of them in both versions; None: the claim is absent."""

    differences: int
    first: list[dict[str, Any]]


async def independent_claims(
    database: Database, position: int, wanted: Wanted, advance: Callable[[int], object]
) -> Claims:
    """Return the claim list as of a position, folded by the independent software.

    Raises:
        LedgerUnavailable: PostgreSQL does not answer the library's driver.
        LogFault: the log cannot be replayed.

    """

    def read() -> Claims:
        mapper = PlainMapper(catalogue.PARTNER_LEDGER)
        with stock_recorder(database.url, database.schema) as recorder:
            stored = numbered(recorder, position, catalogue.PARTNER_LEDGER, advance)
            return claim_list(stored, mapper)

    asked = {name: value for name, value in wanted._asdict().items() if value is not None}
    return {
        claim_id: claim
        for claim_id, claim in (await asyncio.to_thread(read)).items()
        if all(claim[name] == value for name, value in asked.items())
    }


async def compare(ours: AsyncIterable[dict[str, Any]], theirs: Claims) -> Comparison:
    """Compare the lists claim by claim; order does not matter."""
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
