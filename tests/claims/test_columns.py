"""A claim's columns are in each list that has to have them; what lacks one is named."""

import json
import re
from uuid import UUID

import msgspec
from eventsourcing.persistence import Notification

from projections.claim_list.projector import CLAIM_LIST
from service.claims.wire import ClaimListItem
from service.evidence.replay.independent import PlainMapper, claim_list
from service.evidence.replay.state import SHOWN as REPLAYED
from service.facts.catalogue import PARTNER_LEDGER
from service.facts.claims import ClaimCreated
from service.ledger.sql import Sql, queries
from tests.ledger.samples import META, sample
from tests.tables import every_row

JOINED = {"name", "entity_disconnected", "entity_disconnected_at"}
"""Members of a claim that are its entity's, or its connection's."""
PLACES = {"append_id", "stream_id"}
"""Columns of the list by which it is ordered and joined, which a replay does not show."""
SHOWN = [name for name in ClaimListItem.__struct_fields__ if name not in JOINED]
LISTS = queries("projections.claim_list")


def columns(sql: Sql) -> set[str]:
    """Return the columns of a statement's outermost list."""
    text = sql.text
    while (less := re.sub(r"\([^()]*\)", "", text)) != text:
        text = less
    found = re.search(r"\bselect\s(.*?)\sfrom\b", text, re.DOTALL)
    assert found, sql.name
    return {re.split(r"\s+as\s+|\.", one.strip())[-1] for one in found[1].split(",")}


def test_a_claim_is_read_with_what_the_api_shows_of_it():
    """In a list and alone: each member of an item is the column of its name."""
    with every_row() as row:
        for name in SHOWN:
            for query in ("by_id", "page"):
                with row(query, name):
                    assert name in columns(LISTS[query]), (
                        f"`{name}` is shown of a claim: let {query} select it, in "
                        "projections/claim_list/queries.sql"
                    )


def test_each_column_that_is_read_is_one_that_the_projector_fills():
    """Otherwise it would be null for ever."""
    for name in sorted(columns(LISTS.by_id)):
        assert name in CLAIM_LIST.columns, (
            f"`{name}` is read of a claim: give it a type in CLAIM_LIST, in "
            "projections/claim_list/projector.py"
        )


def test_a_replay_shows_each_column_and_the_second_opinion_has_it():
    """Where both lack one, `--independent` would say that they agree."""
    data = msgspec.to_builtins(sample(ClaimCreated))
    state = {"class_version": 1, "meta": msgspec.to_builtins(META), "data": data}
    stored = Notification(UUID(int=1), 1, "ClaimCreated", json.dumps(state).encode(), 1)
    (independent,) = claim_list([stored], PlainMapper(PARTNER_LEDGER)).values()
    kept = set(CLAIM_LIST.columns) - PLACES
    lists = {
        "claim_list in service/evidence/replay/queries.sql": columns(REPLAYED["claim_list"]),
        "_fold in service/evidence/replay/independent.py": independent.keys(),
    }
    with every_row() as row:
        for place, found in lists.items():
            for name in sorted(kept ^ found):
                with row(place):
                    assert name not in kept, f"`{name}` is a column of claim_list: add it"
                    assert name in kept, f"`{name}` is no column of claim_list: remove it"
        for name in sorted(kept & data.keys() & independent.keys()):
            with row("the event's own value"):
                assert independent[name] == data[name], name
