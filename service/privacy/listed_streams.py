"""Which streams the list of erasures is about, by the names of its entries: it may be long."""

from collections.abc import Sequence
from uuid import UUID

from service.facts.connections import link_stream
from service.facts.entities import entity_stream
from service.ledger.aside import Fetch
from service.ledger.ledger import Ledger
from service.ledger.sql import queries
from service.privacy.erasure_list import subject_of

_SQL = queries("service.privacy")


async def listed_streams(
    ledger: Ledger, names: Sequence[str], fetch: Fetch
) -> list[tuple[str, UUID]]:
    """Return the streams that entries of a ledger may be about, each with its entry's name.

    Those of entities and links follow from their ids, whose kinds the names do not say; rows of
    read models have those of claims, and of the team's members.
    """
    subjects = [(name, subject_of(name)) for name in names]
    by_row = _SQL.staff_streams if ledger.name == "accounts" else _SQL.claim_streams
    rows = await fetch(by_row, list({subject for _, subject in subjects}))
    streams = {row["subject"]: row["stream_id"] for row in rows}
    found = [(name, streams[subject]) for name, subject in subjects if subject in streams]
    for stream_of in (entity_stream, link_stream):
        found += [(name, stream_of(ledger.name, subject)) for name, subject in subjects]
    return found
