"""Plans that were made while a queue was empty read as little when it is long.

A queue is empty most of the time, and autovacuum notes that it has no rows and no pages. PostgreSQL
then takes any two plans for equally good, a session keeps the one that it picked, and nothing tells
it that the queue has grown until the queue is analysed again.
"""

import re
from collections.abc import Iterator

import psycopg
import pytest

from service.ledger.database import BY_INDEX
from service.ledger.sql import queries
from tests.plans import nodes_of
from tests.statements import PACKAGES, is_of, prepared, statements_of

ROWS = 300
GROWING = {
    *("events", "log", "pending", "parked"),
    *("hand_overs", "document_checks", "webhook_deliveries"),
    *("mail_outbox", "mail_recipients", "sign_in_links", "sign_outs"),
}
"""What is empty at first, or again and again, and may be long a moment later."""
APART = ("service.evidence", "service.privacy", "service.ledger.rebuild")
"""They read long stretches of the log, for which joins pay; most are of commands, whose sessions
plan for what is there. The worker's and the API's go wrong only by an empty log that somebody has
vacuumed by hand, and the driver keeps no plan for longer than five minutes: autovacuum leaves a log
alone that nothing was written to, and an empty `pending` beside a long log does no harm."""
TEMPORARY = "service.evidence.replay"
"""Its statements are about tables that it makes itself."""
NUMBERED = 1_000_000
EACH = f"from generate_series(1, {ROWS}) as n"
STREAM = "lpad(to_hex(n), 32, '0')::uuid"
FILLED = f"""
with added as (
    insert into live.events (originator_id, originator_version, topic, state)
    select {STREAM}, 1, 'ClaimCreated', '{{}}' {EACH}
    returning append_id
)
insert into live.log (position, append_id, leaf_hash)
select {NUMBERED} + row_number() over (order by append_id desc), append_id, sha256('') from added;

with added as (
    insert into live.events (originator_id, originator_version, topic, state)
    select {STREAM}, 2, 'ClaimStageChanged', '{{}}' {EACH}
    returning append_id
)
insert into live.pending select append_id from added on conflict do nothing;

insert into live.parked (read_model, position, stream_id, error, parked_at)
select 'activity', {NUMBERED} + n, lpad('1', 32, '0')::uuid, 'fault', now() {EACH};

insert into live.hand_overs (position, stream_id, noted_at, next_attempt_at)
select {NUMBERED} + n, {STREAM}, now(), now() {EACH};

insert into live.document_checks (
    position, document_id, stream_id, claim_id, partner_id, storage_path, mime_type, size,
    generation, noted_at, next_attempt_at
)
select
    {NUMBERED} + n, 'doc_' || n, {STREAM}, 'clm_' || n, 'ptn_1', 'path/' || n, 'text/csv', 1, 1,
    now(), now()
{EACH};

insert into live.webhook_queues (endpoint_id, partner_id, position)
select 'whe_' || n, 'ptn_' || n, 0 from generate_series(0, 9) as n;

insert into live.webhook_deliveries (
    endpoint_id, position, subject, type, noted_at, next_attempt_at
)
select 'whe_' || n % 10, n, 'clm_' || n, 'claim.created', now(), now() {EACH};

insert into live.mail_outbox (message_id, stream_id, version, noted_at, next_attempt_at)
select 'message-' || n, {STREAM}, 1, now(), now() {EACH}
"""  # noqa: S608 - of constants alone
TABLES = sorted(set(re.findall(r"insert into (live\.\w+)", FILLED)))
RUN = {
    ("service.ledger", "sequencer_number"): (
        f"0, {ROWS}, 10000000, '{'0' * 32}', 'EventsBound', 0"
    ),
    ("service.ledger", "sequencer_lag"): "10000",
    ("service.ledger", "sequencer_probe"): "0",
    ("service.ledger", "sequencer_unqueue"): "",
    ("service.ledger.following", "parked_events"): (
        f"'activity', lpad('1', 32, '0')::uuid, {ROWS}, 10000000"
    ),
    ("service.ledger.following", "subscription_events"): (
        f"{NUMBERED}, {ROWS}, array['ClaimCreated'], null, 10000000"
    ),
    ("service.claims", "hand_overs_take"): f"now(), {ROWS}, 10000000, now()",
    ("service.documents", "checks_take"): "now(), 16, now(), 'ptn_1'",
    ("service.mail", "outbox_take"): "now(), array[]::uuid[], 32, 64",
    ("service.mail", "outbox_waiting"): "",
    ("service.webhooks", "due"): "now(), array[]::text[], 100, 10",
    ("service.webhooks", "take"): "'whe_1', now(), 100, now()",
    ("projections.activity", "timeline"): (
        f"'clm_1', '\"clm_1\"', {ROWS}, 2000000, null, null, null, {ROWS}, null"
    ),
}
"""What asks for much of a long queue, with arguments."""


@pytest.fixture(scope="module")
def owner(module_database_url) -> Iterator[psycopg.Connection]:
    """Return an owner's connection with our sessions' settings, after the tables' last VACUUM."""
    with psycopg.connect(module_database_url, autocommit=True, prepare_threshold=None) as one:
        one.execute("vacuum (analyze)")
        for name, value in {**BY_INDEX, "plan_cache_mode": "force_generic_plan"}.items():
            one.execute("select set_config(%s, %s, false)", [name, value])
        yield one


def _plan(owner: psycopg.Connection, arguments: str, options: str = "format json") -> list[dict]:
    given = f"({arguments})" if arguments else ""
    row = owner.execute(f"explain ({options}) execute one{given}".encode()).fetchone()
    assert row is not None
    return list(nodes_of(row[0][0]["Plan"]))


def _whole(node: dict) -> set[str]:
    """Return the tables of which a part of a plan reads all rows."""
    return {
        below["Relation Name"]
        for below in nodes_of(node)
        if below.get("Relation Name") in GROWING
        and below["Node Type"].endswith("Scan")
        and "Index Cond" not in below
    }


@pytest.mark.parametrize("package", [one for one in PACKAGES if not one.startswith(APART)])
def test_no_plan_of_an_empty_table_reads_a_whole_one_for_each_row(owner, package):
    """Neither a table, nor what a subquery makes of one, is gone through again for each row."""
    for sql in statements_of(package):
        if sql.text.startswith("show "):  # it reads no table, and has no plan
            continue
        types = prepared(owner, sql, "live" if is_of(owner, sql, "live") else "accounts")
        assert types is not None, sql.name
        nodes = _plan(owner, ", ".join(["null"] * len(types)))
        owner.execute("deallocate one")
        for node in nodes:
            if node["Node Type"] != "Nested Loop":
                continue
            sides = {side.get("Parent Relationship"): side for side in node["Plans"]}
            assert not _whole(sides["Inner"]), sql.name
            if "Join Filter" in node:
                assert not _whole(sides["Outer"]) - {"events", "log"}, sql.name


def test_no_row_is_compared_with_all_that_a_subquery_finds(owner):
    """An array of these is looked up in an index: both sets may be long."""
    compared = set()
    for sql in (one for name in set(PACKAGES) - {TEMPORARY} for one in statements_of(name)):
        types = prepared(owner, sql, "live" if is_of(owner, sql, "live") else "accounts")
        if types is not None:
            nodes = _plan(owner, ", ".join(["null"] * len(types)))
            owner.execute("deallocate one")
            filters = [node.get(f"{kind}Filter", "") for node in nodes for kind in ("", "Join ")]
            if re.search(r"(ANY|ALL) \(\(InitPlan", " ".join(filters)):
                compared.add(sql.name)
    assert compared == set()


@pytest.mark.parametrize("statement", RUN, ids=" ".join)
def test_what_a_long_queue_costs_grows_with_its_length(owner, statement):
    """Not with the square of it: each part of the plan looks at a row a few times at most."""
    package, name = statement
    assert prepared(owner, queries(package)[name], "live") is not None
    _plan(owner, RUN[statement])
    try:
        with owner.transaction(force_rollback=True):
            owner.execute(FILLED.encode())
            nodes = _plan(owner, RUN[statement], "analyze, format json")
    finally:  # the tables that were filled have no pages again
        owner.execute(f"vacuum (analyze) {', '.join(TABLES)}".encode())
        owner.execute("deallocate one")
    looked_at = [
        (
            node["Actual Rows"]
            + sum(node.get(f"Rows Removed by {why}", 0) for why in ("Filter", "Join Filter"))
        )
        * node["Actual Loops"]
        for node in nodes
    ]
    assert max(looked_at) <= 3 * ROWS, nodes
