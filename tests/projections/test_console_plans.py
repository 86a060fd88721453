"""The console's lists are read from indexes, however much one partner has."""

import json
from pathlib import Path
from uuid import uuid4

import psycopg
import psycopg.sql
import pytest

from projections.claim_list.partners_claims import ClaimFilter, PartnersClaims
from service.ledger.sql import queries
from tests.plans import nodes_of, rows_read

ROWS = 40_000
FILL = Path(__file__).with_name("fill_console_lists.sql")
SHOWN = 51

CLAIMS = queries("projections.claim_list")
LINKS = queries("projections.connect_links")
ONBOARDINGS = queries("projections.onboardings").page_of_partner
CALLS = queries("service.request_log").page
DOCUMENTS = queries("service.request_log").has_documents
HOURS = queries("service.request_log").usage_of_hours
LOOKED_TO = queries("service.request_log").looked_to
FILTERED = queries("service.request_log").page_filtered
COUNTS = 2_000
"""That a page of calls looks through, of 36,000."""

PAGES = [
    *(
        (CLAIMS[f"page_of_partner{name}"], types, f"'ptn_1', {place}, 51{more}", "claim_list")
        for name, types, more in (
            ("", "text, bigint, int", ""),
            ("_stage", "text, bigint, int, text", ", 'triage'"),
            ("_entity", "text, bigint, int, text", ", 'ent_1'"),
        )
        for name, place in (
            (name, "9223372036854775807"),
            (name, "20000"),
            (f"{name}_oldest", "-1"),
            (f"{name}_oldest", "20000"),
        )
    ),
    *(
        (
            CLAIMS.page_of_partner_references,
            "text, bigint, int, text, text",
            f"'ptn_1', {place}, 51, '{begins}', '{after}'",
            "claim_list",
        )
        for place, begins, after in (
            (-1, "", ""),
            (-1, "case-2", "case-2"),
            (9, "case-2", "case-23"),
        )
    ),
    *(
        (
            LINKS[f"page_of_partner{user}{order}"],
            f"text, timestamptz, text, int{', text' if user else ''}",
            f"'ptn_1', {place}, 51{more if user else ''}",
            "connect_links",
        )
        for user, more in (("", ""), ("_user", ", 'u'"))
        for order in ("", "_oldest")
        for place in ("null, null", "'2026-02-20', 'lnk_9'")
    ),
    (
        ONBOARDINGS,
        "text, timestamptz, text, int, timestamptz",
        "'ptn_1', null, null, 51, null",
        "onboardings",
    ),
    (
        ONBOARDINGS,
        "text, timestamptz, text, int, timestamptz",
        "'ptn_1', '2026-02-20', 'onb_9', 51, '2026-02-10'",
        "onboardings",
    ),
    (CALLS, "text, timestamptz, text, int", "'ptn_1', null, null, 51", "requests"),
    (CALLS, "text, timestamptz, text, int", "'ptn_1', '2026-02-20', 'req_9', 51", "requests"),
]


@pytest.fixture(scope="module")
def filled(module_database_url):
    """Return an owner's connection to 40,000 rows of each list, most of them one partner's."""
    with psycopg.connect(module_database_url, autocommit=True, prepare_threshold=None) as owner:
        owner.execute(FILL.read_text())
        owner.execute("vacuum analyze")
        yield owner


@pytest.mark.parametrize("generic", ["force_generic_plan", "force_custom_plan"])
@pytest.mark.parametrize(
    ("sql", "types", "given", "table"),
    PAGES,
    ids=[f"{one[0].name}-{one[2]}" for one in PAGES],
)
def test_a_page_is_read_from_an_index(filled, sql, types, given, table, generic):
    """The index has the order: no row beyond the page is read, with any plan."""
    nodes = explained(filled, sql, types, given, generic)
    scans = [node for node in nodes if node.get("Relation Name") == table]
    assert scans
    assert {node["Node Type"] for node in scans} <= {"Index Scan", "Index Only Scan"}
    assert max(rows_read(node) for node in scans) <= SHOWN + 1, json.dumps(nodes)


class Asked:
    """A pool that keeps what it is asked, and finds nothing."""

    def __init__(self):
        self.reads, self.given = self, []

    async def fetch(self, sql, *given):
        """Keep a statement's arguments."""
        assert sql is CLAIMS.page_of_partner_references
        self.given += given
        return []


@pytest.mark.parametrize("generic", ["force_generic_plan", "force_custom_plan"])
async def test_a_search_for_a_reference_begins_where_it_is(filled, generic):
    """Not at the partner's first one: nothing of 36,000 is passed over in the index."""
    asked = Asked()
    wanted = ClaimFilter(sought="case-9")
    await PartnersClaims(asked).page("ptn_1", wanted, limit=50, after=None)
    given = ", ".join(psycopg.sql.Literal(one).as_string() for one in asked.given)
    types = "text, bigint, int, text, text"
    nodes = explained(filled, CLAIMS.page_of_partner_references, types, given, generic)
    # Of the index a few, and of the table at most one a row.
    assert nodes[0]["Shared Hit Blocks"] + nodes[0]["Shared Read Blocks"] < SHOWN + 10


@pytest.mark.parametrize("generic", ["force_generic_plan", "force_custom_plan"])
def test_claims_of_a_stage_are_counted_up_to_a_bound(filled, generic):
    """In the index alone, and no further than the bound."""
    given = "'ptn_1', array['triage', 'closed'], 100"
    nodes = explained(filled, CLAIMS.count_by_stage, "text, text[], int", given, generic)
    scans = [node for node in nodes if node.get("Relation Name") == "claim_list"]
    assert {node["Node Type"] for node in scans} == {"Index Only Scan"}, json.dumps(nodes)
    assert sum(rows_read(node) for node in scans) <= 2 * 101


@pytest.mark.parametrize("generic", ["force_generic_plan", "force_custom_plan"])
def test_claims_are_looked_through_for_a_document_up_to_a_bound(filled, generic):
    """None of 36,000 has one: those at either end are looked at."""
    nodes = explained(filled, DOCUMENTS, "text, int", "'ptn_1', 100", generic)
    assert {"claim_list", "claim_documents"} <= {node.get("Relation Name") for node in nodes}
    assert max(rows_read(node) for node in nodes) <= 2 * 100, json.dumps(nodes)


@pytest.mark.parametrize("generic", ["force_generic_plan", "force_custom_plan"])
@pytest.mark.parametrize(
    "wanted",
    [
        "'claim_conflict', null, null, null",
        "null, 'key_2', null, null",
        "null, null, 'POST /v1/claims', null",
        "null, null, null, 4::smallint",
        "'none', null, null, null",
        "null, 'key_rare', null, null",
        "'claim_conflict', 'key_0', null, null",
    ],
)
@pytest.mark.parametrize("before", ["null, null", "'2026-02-20 12:34:56', ''"])
def test_rare_calls_are_found_without_reading_the_rest(filled, wanted, before, generic):
    """Of 40,000 calls only those of a few minutes are read, and of as many counts, few, too."""
    types = "text, timestamptz, text, text, text, text, smallint, int"
    given = f"'ptn_1', {before}, {wanted}, {COUNTS}"
    nodes = explained(filled, LOOKED_TO, types, given, generic)
    assert _rows_of("request_counts", nodes) <= COUNTS + 1, json.dumps(nodes)
    row = filled.execute(f"execute page ({given})").fetchone()
    looked_to = f"'{row[0].isoformat()}'" if row else "null"
    types = "text, timestamptz, text, int, text, text, text, smallint, timestamptz"
    given = f"'ptn_1', {before}, 51, {wanted}, {looked_to}"
    nodes = explained(filled, FILTERED, types, given, generic)
    assert _rows_of("requests", nodes) <= ROWS / 50, json.dumps(nodes)
    assert _rows_of("request_counts", nodes) <= COUNTS + 10, json.dumps(nodes)


@pytest.mark.parametrize("generic", ["force_generic_plan", "force_custom_plan"])
def test_an_onboarding_is_found_by_id_or_stream_alone(filled, generic):
    """Nothing else of 40,000 is read."""
    sql = queries("projections.onboardings").of_partner
    streams = ", ".join(f"'{uuid4()}'" for _ in range(50))
    given = f"'ptn_1', 'onb_9', array[{streams}]::uuid[]"
    nodes = explained(filled, sql, "text, text, uuid[]", given, generic)
    scans = [node for node in nodes if node.get("Relation Name") == "onboardings"]
    assert scans
    assert sum(rows_read(node) for node in scans) <= 1, json.dumps(nodes)


@pytest.mark.parametrize("generic", ["force_generic_plan", "force_custom_plan"])
def test_usage_is_read_from_few_rows(filled, generic):
    """By the hour, one for each endpoint, however many keys there are."""
    given = "'ptn_1', '2026-02-20 12:00'"
    nodes = explained(filled, HOURS, "text, timestamptz", given, generic)
    assert {node.get("Relation Name") for node in nodes} <= {"request_hours", None}
    assert 24 < _rows_of("request_hours", nodes) <= ROWS / 50, json.dumps(nodes)


def _rows_of(table, nodes):
    return sum(rows_read(node) for node in nodes if node.get("Relation Name") == table)


def explained(owner, sql, types, given, generic):
    """Return the nodes of the executed plan."""
    owner.execute("deallocate all")
    owner.execute(f"set plan_cache_mode = {generic}")
    owner.execute(f"prepare page ({types}) as {sql.on('live')}")
    rows = owner.execute(
        f"explain (analyze, buffers, format json) execute page ({given})"
    ).fetchone()[0]
    return list(nodes_of(rows[0]["Plan"]))
