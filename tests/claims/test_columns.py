"""A claim's columns are in each list that has to have them; what lacks one is named."""

import re

from projections.claim_list.projector import CLAIM_LIST
from service.claims.wire import ClaimListItem
from service.ledger.sql import Sql, queries
from tests.tables import every_row

JOINED = {"name", "entity_disconnected", "entity_disconnected_at"}
"""Members of a claim that are its entity's, or its connection's."""
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
