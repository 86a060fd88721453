"""A page of claims is read from an index, however many claims exist."""

import json
import re
from datetime import UTC, datetime

import psycopg
import pytest

from projections.claim_list.reader import PAGE_BYTES_MAX
from service.ledger.sql import queries
from tests.plans import nodes_of, rows_read

ROWS = 100_000


@pytest.fixture(scope="module")
def filled(module_database_url):
    """Return an owner's connection to 100,000 claims, half of them one entity's."""
    with psycopg.connect(module_database_url, autocommit=True, prepare_threshold=None) as owner:
        now = datetime(2026, 3, 1, tzinfo=UTC)
        owner.execute(
            "insert into live.entities select 'ent_' || n, gen_random_uuid(), 'Business', null,"
            " null, true, %s from generate_series(0, 999) as n",
            (now,),
        )
        owner.execute(
            "insert into live.connections select 'ptn_1', 'ent_' || n, 1, %s, null"
            " from generate_series(0, 999) as n",
            (now,),
        )
        owner.execute(
            "insert into live.claim_list select 'clm_' || n, n, gen_random_uuid(), 'ptn_1',"
            " 'ent_' || case when n %% 2 = 0 then 0 else n %% 1000 end, 'case-' || n,"
            " case when n %% 10 = 0 then 'user' end, '[]', 'triage', %s"
            " from generate_series(1, %s) as n",
            (now, ROWS),
        )
        owner.execute("analyze")
        yield owner


@pytest.mark.parametrize("generic", ["force_generic_plan", "force_custom_plan"])
@pytest.mark.parametrize("token", ["null", "'clm_50000'"], ids=["first page", "later page"])
@pytest.mark.parametrize("entity", ["ent_0", "ent_7"], ids=["large", "small"])
@pytest.mark.parametrize("user", ["null", "'user'"], ids=["all users", "one user"])
def test_a_page_is_read_from_an_index(filled, user, entity, token, generic):
    """No row beyond the page is read: the index has the order, and nothing is scanned.

    The lateral's ORDER BY comes sorted out of the index; the outer one sorts a page at most.
    """
    text = queries("projections.claim_list").page.on("live")
    filled.execute("deallocate all")
    filled.execute(f"set plan_cache_mode = {generic}")
    filled.execute(f"prepare page (text, text, text, bigint, text, bigint) as {text}")
    explained = filled.execute(
        "explain (analyze, format json)"
        f" execute page ('ptn_1', '{entity}', {token}, 101, {user}, {PAGE_BYTES_MAX})"
    ).fetchone()[0]
    nodes = list(nodes_of(explained[0]["Plan"]))
    scans = [node for node in nodes if node.get("Relation Name") == "claim_list"]
    assert scans
    assert {node["Node Type"] for node in scans} <= {"Index Scan", "Index Only Scan"}
    assert not any(re.search("Bitmap|Seq Scan", node["Node Type"]) for node in scans)
    assert all(node["Actual Rows"] <= 101 for node in nodes), json.dumps(explained)
    removed = sum(node.get("Rows Removed by Filter", 0) for node in scans)
    assert removed <= 1


def test_what_a_page_has_no_room_for_is_not_read(filled):
    """Of sixty claims with a mebibyte of references a page has one, and reads no other's."""
    references = json.dumps(["x" * 250] * 4_000)
    filled.execute(
        "insert into live.claim_list select 'clm_long_' || n, 1000000 + n, gen_random_uuid(),"
        " 'ptn_1', 'ent_999', 'case', null, %s, 'triage', now() from generate_series(1, 60) as n",
        (references,),
    )
    text = queries("projections.claim_list").page.on("live")
    filled.execute("deallocate all")
    filled.execute(f"prepare page (text, text, text, bigint, text, bigint) as {text}")
    asked = f"execute page ('ptn_1', 'ent_999', null, 201, null, {PAGE_BYTES_MAX})"
    explained = filled.execute(f"explain (analyze, buffers, format json) {asked}").fetchone()[0]
    plan = explained[0]["Plan"]
    assert plan["Actual Rows"] == 1
    # Two blocks a row, of the index and of the table; a row's references alone are another eight.
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 60 * 4
    assert filled.execute(asked).fetchall()[0][-1] is True


def test_a_partners_events_are_read_from_an_index(filled):
    """In the middle of twenty thousand events a page reads its own rows alone, of each table.

    Of those that are parked, it looks at none that stands behind it.
    """
    filled.execute(
        "insert into live.log (position, append_id, leaf_hash)"
        " select n, n, sha256(n::text::bytea) from generate_series(1, 20000) as n"
    )
    filled.execute(
        "insert into live.partner_events (stream_id, position, partner_id, type, at, claim_id,"
        " stage) select gen_random_uuid(), n,"
        " case when n % 2 = 0 then 'ptn_1' else 'ptn_' || n % 100 end,"
        " 'claim.created', now(), 'clm_' || n, 'triage' from generate_series(1, 20000) as n"
    )
    filled.execute(
        "insert into live.parked (read_model, position, stream_id, error, parked_at)"
        " select 'partner_events', n, gen_random_uuid(), 'fault', now()"
        " from generate_series(10500, 20000) as n"
    )
    filled.execute("analyze live.partner_events, live.log, live.parked")
    text = queries("projections.partner_events").page.on("live")
    for generic in ("force_generic_plan", "force_custom_plan"):
        filled.execute("deallocate all")
        filled.execute(f"set plan_cache_mode = {generic}")
        filled.execute(f"prepare page (text, bigint, bigint, bytea, text, int) as {text}")
        explained = filled.execute(
            "explain (analyze, format json)"
            " execute page ('ptn_1', 10000, 100, '\"ptn_1\"', 'x', 200)"
        ).fetchone()[0]
        nodes = [one for one in nodes_of(explained[0]["Plan"]) if "Relation Name" in one]
        read = {one["Relation Name"]: one for one in nodes if one["Actual Loops"]}
        for table in ("partner_events", "log", "claim_list"):
            assert re.fullmatch(r"Index (Only )?Scan", read[table]["Node Type"]), (generic, table)
        for one in nodes:
            looked_at = one["Actual Rows"] + one.get("Rows Removed by Filter", 0)
            assert looked_at * one["Actual Loops"] <= 100, (generic, one)


def test_what_brought_an_entity_is_looked_for_among_so_many_events(filled):
    """Of a connection that was made and ended twenty thousand times, by a page and by places."""
    filled.execute(
        "insert into live.log (position, append_id, leaf_hash)"
        " select n, n, sha256(n::text::bytea) from generate_series(30001, 50000) as n"
        " on conflict do nothing"
    )
    filled.execute(
        "insert into live.partner_events (stream_id, position, partner_id, type, at, entity_id)"
        " select lpad('7', 32, '0')::uuid, n, 'ptn_again',"
        " case when n % 2 = 0 then 'entity.connected' else 'entity.disconnected' end, now(),"
        " 'ent_again' from generate_series(30001, 50000) as n"
    )
    filled.execute("analyze live.partner_events, live.log")
    statements, places = queries("projections.partner_events"), list(range(49000, 49100))
    for generic in ("force_generic_plan", "force_custom_plan"):
        filled.execute("deallocate all")
        filled.execute(f"set plan_cache_mode = {generic}")
        page, about = (statements[name].on("live") for name in ("page", "about"))
        filled.execute(f"prepare page (text, bigint, bigint, bytea, text, int) as {page}")
        filled.execute(f"prepare about (text, bigint[], int) as {about}")
        for asked in (
            "page ('ptn_again', 49000, 100, '\"ptn_again\"', 'x', 20)",
            f"about ('ptn_again', array{places}, 20)",
        ):
            explain = f"explain (analyze, format json) execute {asked}"
            (explained,) = filled.execute(explain).fetchone()
            nodes = [one for one in nodes_of(explained[0]["Plan"]) if "Relation Name" in one]
            assert max(rows_read(one) for one in nodes) == 100 * 20, (generic, nodes)


def test_the_last_checkpoint_is_read_from_an_index(filled):
    """Every scrape reads it, among four checkpoints an hour for years."""
    filled.execute(
        "insert into live.checkpoints (origin, size, note, made_at)"
        " select 'o', n, 'note', now() + n * interval '1 minute' from generate_series(1, 5000) as n"
    )
    filled.execute("analyze live.checkpoints")
    for name, index, rows in (("last", "checkpoints_pkey", 1), ("newest", "checkpoints_by_age", 2)):
        text = queries("service.evidence.checkpoints")[name].on("live").replace("$1", "'o'")
        explained = filled.execute(f"explain (analyze, format json) {text}").fetchone()[0]
        nodes = [
            one
            for one in nodes_of(explained[0]["Plan"])
            if one.get("Relation Name") == "checkpoints"
        ]
        assert [(one["Index Name"], one["Actual Rows"]) for one in nodes] == [(index, rows)]
