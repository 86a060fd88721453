"""A partner's calls and usage are its own: other partners' change nothing of them."""

# ruff: noqa: S608 - what is put together is ours
from tests.apart.tenants import Tenants

CALLS = """
insert into ledger.requests (
    request_id, partner_id, key_id, at, method, route, status, code, duration_ms
)
select '{0} ' || at, '{0}', 'key_1', at, 'POST', '/v1/claims', 201, '', 1 from ({1}) as calls (at);
insert into ledger.request_counts
select partner_id, date_trunc('minute', at), status, code, method, route, key_id, count(*)
from ledger.requests where partner_id = '{0}' group by 1, 2, 3, 4, 5, 6, 7;
insert into ledger.request_hours
select partner_id, date_trunc('hour', at, 'UTC'), method, route, count(*), 0, 0
from ledger.requests where partner_id = '{0}' group by 1, 2, 3, 4;
insert into ledger.request_days
select
    partner_id, (at at time zone 'UTC')::date, status, code, method, route, key_id, count(*),
    min(at), max(at)
from ledger.requests where partner_id = '{0}' group by 1, 2, 3, 4, 5, 6, 7
"""
CLAIMS = """
insert into ledger.claim_list (
    claim_id, append_id, stream_id, partner_id, entity_id, partner_claim_id, partner_invoice_ids,
    stage, created_at
)
select 'clm_' || n, n, gen_random_uuid(), '{}', 'ent_1', n, '[]', 'submitted', '2026-01-01'
from generate_series({}) as n
"""
OLD, EARLY, NOON = (
    f"timestamptz '{at}:00+00'" for at in ("2020-01-01 10", "2026-01-01 10", "2026-01-01 12")
)
EVERY_HOUR = f"select generate_series({EARLY} - interval '1 hour', {NOON}, interval '15 minutes')"
PARTNERS = Tenants(
    ledger="live",
    tenant="ptn_1",
    whose=["partner_id"],
    own=[
        f"""
        {CALLS.format("ptn_1", f"values ({OLD}), ({EARLY}), ({NOON})")};
        {CLAIMS.format("ptn_1", "2, 3")}
        """,
        CALLS.format("ptn_1", f"values ({NOON})"),
    ],
    others=f"""
    {CALLS.format("ptn_2", f"{EVERY_HOUR} union all select {OLD}")};
    delete from ledger.request_days where partner_id = 'ptn_2' and day < '2021-01-01';
    {CLAIMS.format("ptn_2", "1, 4, 3")};
    insert into ledger.claim_documents
    select 'doc_' || n, 'clm_' || n, n, '', 1, 1, '' from unnest(array[1, 4]) as n
    """,
    # They tell where to look, and counts of the partner's own say whether anything is there.
    needless=["page_filtered: partner_id = $1 (1)"],
)
SINCE = "'ptn_1', '2025-01-01'"
ENDED = "'{201}', array[''], '{1}', array[null]"
ARGUMENTS = {
    "add_entries": [
        f"'{{new}}', '{{ptn_1}}', '{{key_1}}', array[{NOON}], '{{POST}}', '{{/v1/claims}}', {ENDED}"
    ],
    "delete_days": ["'2021-01-01'"],
    "delete_hours": ["'2021-01-01'"],
    "delete_minutes": ["'2021-01-01', 100"],
    "delete_requests": ["'2021-01-01', 100"],
    "has_documents": ["'ptn_1', 1"],
    "looked_to": [f"'ptn_1', null, null, null, null, null, null, {nr}" for nr in (0, 1)],
    "one": ["'ptn_1 ' || " + NOON + ", 'ptn_1'", "'ptn_2 ' || " + NOON + ", 'ptn_1'"],
    "page": ["'ptn_1', null, null, 100"],
    "page_filtered": [f"'ptn_1', {NOON}, '', 1, null, 'key_1', null, null, null"],
    "seen": [SINCE],
    "set_key_uses": [],
    "usage": [SINCE],
    "usage_of_days": [SINCE],
    "usage_of_hours": [SINCE],
}
TABLES = [("service.request_log", PARTNERS, ARGUMENTS)]
