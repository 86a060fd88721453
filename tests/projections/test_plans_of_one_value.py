"""Rare values are found by index where ANALYZE has met one value alone."""

import json
from pathlib import Path

import psycopg
import pytest

from service.ledger.database import BY_INDEX
from service.ledger.sql import queries
from tests.plans import nodes_of, rows_read

FILL = Path(__file__).with_name("fill_one_value.sql")
RARE = 3

CLAIMS = queries("projections.claim_list")
LINKS = queries("projections.connect_links")
WEBHOOKS = queries("service.webhooks")
TEAM = queries("service.pages.backoffice")
NEWEST = 2**63 - 1

ASKED = [
    (CLAIMS.page, "'ptn_1', 'rare', null, 51, null, 1000000"),
    (CLAIMS.page, "'ptn_1', 'usual', null, 51, 'rare', 1000000"),
    (CLAIMS.page_of_connection, f"'ptn_1', 'rare', {NEWEST}, 51"),
    (CLAIMS.page_of_connection, f"'ptn_2', 'usual', {NEWEST}, 51"),
    (CLAIMS.page_of_partner, f"'ptn_2', {NEWEST}, 51"),
    (CLAIMS.page_of_partner_references, "'ptn_2', -1, 51, 'case', 'case'"),
    (CLAIMS.count_by_stage, "'ptn_1', array['rare'], 1000"),
    *(
        (CLAIMS[f"page_of_partner_{what}{order}"], f"'ptn_1', {place}, 51, 'rare'")
        for what in ("entity", "stage")
        for order, place in (("", NEWEST), ("_oldest", -1))
    ),
    *(
        (LINKS[f"page_of_partner_user{order}"], "'ptn_1', null, null, 51, 'rare'")
        for order in ("", "_oldest")
    ),
    (LINKS.page_of_partner, "'ptn_2', null, null, 51"),
    (LINKS.page_of_partner_user, "'ptn_2', null, null, 51, 'usual'"),
    (TEAM.entity_claims, "'rare', null, 51"),
    (TEAM.ledger_by_reference, "'rare', array['ptn_1'], 51"),
    (WEBHOOKS.delivered, "'rare', null, null, 51"),
    (WEBHOOKS.states, "array['rare'], now(), 100"),
    (queries("service.documents").checks_take, "now(), 51, now(), 'rare'"),
]


@pytest.fixture(scope="module")
def filled(module_database_url):
    """Return an owner's connection to tables with one usual value, which plans once for all."""
    with psycopg.connect(module_database_url, autocommit=True, prepare_threshold=None) as owner:
        owner.execute(FILL.read_bytes())
        for name, value in {**BY_INDEX, "plan_cache_mode": "force_generic_plan"}.items():
            owner.execute("select set_config(%s, %s, false)", [name, value])
        yield owner


@pytest.mark.parametrize(("sql", "given"), ASKED, ids=[f"{one.name} {to}" for one, to in ASKED])
def test_rows_of_a_rare_value_are_read_alone(filled, sql, given):
    """A condition that seems to hold for every row is looked up in an index all the same."""
    with filled.transaction(force_rollback=True):
        filled.execute(f"prepare one as {sql.on('live')}".encode())
        explain = f"explain (analyze, format json) execute one ({given})"
        ((found,),) = filled.execute(explain.encode()).fetchall()
    filled.execute("deallocate one")
    nodes = list(nodes_of(found[0]["Plan"]))
    assert max(rows_read(node) for node in nodes) <= RARE, json.dumps(nodes)
