"""What a partner sees of claims, businesses, links, events, its team and endpoints is its own."""

# ruff: noqa: S608 - what is put together is ours
from tests.apart.tenants import Tenants

NUMBERS = """(
    select
        n, lpad(n::text, 32, '0')::uuid as stream,
        timestamptz '2026-01-01' + n * interval '1 hour' as at
    from unnest(array[{1}]) as n
)"""
LISTS = f"""
with numbers as {NUMBERS}, written as (
    insert into ledger.events (originator_id, originator_version, topic, state)
    select stream, 1, 'ClaimCreated', '"{{0}}"' from numbers
    returning append_id, originator_id
)
insert into ledger.log (position, append_id, leaf_hash)
select n, append_id, sha256('') from numbers join written on stream = originator_id;
insert into ledger.claim_list (
    claim_id, append_id, stream_id, partner_id, entity_id, partner_claim_id, partner_user_id,
    partner_invoice_ids, stage, created_at
)
select
    'clm_' || n, n, stream, '{{0}}', 'ent_' || n / 10, 'case', 'user', '[]', 'submitted', at
from {NUMBERS} as numbers;
insert into ledger.partner_events (stream_id, position, partner_id, type, at, claim_id)
select stream, n, '{{0}}', 'claim.created', at, 'clm_' || n from {NUMBERS} as numbers;
insert into ledger.connect_links (
    link_id, stream_id, token_hash, partner_id, partner_user_id, state, issued_at, expires_at
)
select
    'lnk_' || n, stream, sha256(n::text::bytea), '{{0}}', 'user', 'issued', at, '2999-01-01'
from {NUMBERS} as numbers;
insert into ledger.onboardings (
    onboarding_id, stream_id, partner_id, partner_user_id, entity_id, magic_link_hash, state,
    started_at, expires_at
)
select
    'onb_' || n, stream, '{{0}}', 'user', 'ent_' || n / 10, sha256(n::text::bytea), 'started', at,
    '2999-01-01'
from {NUMBERS} as numbers;
"""
"""Of a partner {0}: an event each, in a stream of its own, with these numbers {1} as positions."""
ENTITIES = """
insert into ledger.entities (
    entity_id, stream_id, name, email_hash, company_number_hash, established, registered_at
)
select 'ent_' || n, gen_random_uuid(), 'A name', '\\x0{0}', '\\x0{0}', n < 9, '2026-01-01'
from unnest(array[{1}]) as n;
"""
CONNECTED = "insert into ledger.connections values ('ptn_1', 'ent_0', 1, '2026-01-01')"
OWN = f"""
{ENTITIES.format(1, "0, 1, 9")}
{CONNECTED}, ('ptn_1', 'ent_1', 1, '2026-01-01');
{LISTS.format("ptn_1", "2, 4, 6, 12")}
update ledger.partner_events set type = 'entity.connected', claim_id = null, entity_id = 'ent_9'
where position = 6
"""
OTHERS = f"""
insert into ledger.connections
values
    ('ptn_2', 'ent_0', 2, '2026-01-02', '2026-01-03'),
    ('ptn_2', 'ent_9', 2, '2026-01-02', null);
{LISTS.format("ptn_2", "1, 3, 5, 11, 93")}
insert into ledger.parked (read_model, position, stream_id, error, parked_at)
select 'partner_events', position, stream_id, 'fault', at
from ledger.partner_events where position = 3
"""
"""Of businesses that the partner is connected to, too, and one that it does not know."""
PARTNERS = Tenants("live", "ptn_1", ["partner_id"], [OWN], OTHERS, of_all=["entity_connections"])
BUSINESSES = Tenants(
    ledger="live",
    tenant="ent_0",
    whose=["entity_id", "email_hash", "company_number_hash"],
    own=[f"{ENTITIES.format(1, '0, 9')} {CONNECTED}; {LISTS.format('ptn_1', '2, 4')}"],
    others=f"""
    {ENTITIES.format(2, "1")}
    insert into ledger.connections values ('ptn_1', 'ent_1', 2, '2026-01-02', '2026-01-03');
    {LISTS.format("ptn_1", "11, 13, 15")}
    """,
)
"""Of the same partner."""
NEWEST, OLDEST = "9223372036854775807", "-1"
MINE, THEIRS = (f"lpad('{n}', 32, '0')::uuid" for n in (2, 3))
CLAIMS = {
    "by_id": ["'clm_2'"],
    "count_by_stage": ["'ptn_1', '{submitted}', 100"],
    "page": [
        f"'ptn_1', 'ent_0', {token}, 51, {user}, 1000000"
        for token in ("null", "'clm_4'", "'clm_3'", "'clm_13'")
        for user in ("null", "'user'")
    ],
    "page_of_connection": [f"'ptn_1', 'ent_0', {NEWEST}, 3"],
    "page_of_partner": [f"'ptn_1', {NEWEST}, 3"],
    "page_of_partner_oldest": [f"'ptn_1', {OLDEST}, 3"],
    "page_of_partner_stage": [f"'ptn_1', {NEWEST}, 3, 'submitted'"],
    "page_of_partner_stage_oldest": [f"'ptn_1', {OLDEST}, 3, 'submitted'"],
    "page_of_partner_entity": [f"'ptn_1', {NEWEST}, 3, 'ent_0'"],
    "page_of_partner_entity_oldest": [f"'ptn_1', {OLDEST}, 3, 'ent_0'"],
    "page_of_partner_references": [f"'ptn_1', {OLDEST}, 3, 'ca', 'ca'"],
    "set_stage": ["'{clm_2}', '{paid}'"],
}
AT = "'{2026-01-05}'"
CONNECTIONS = {
    "address": ["'ent_0'"],
    "choose_stage_mails": ["'{ent_0}', '{true}'"],
    "connect": [f"'{{ptn_1}}', '{{ent_0}}', '{{3}}', {AT}"],
    "correct_entity": ["'{ent_0}', '{New name}', '{null}'"],
    "disconnect": [f"'{{ptn_1}}', '{{ent_0}}', '{{3}}', {AT}"],
    "entities_of": ["'\\x01'"],
    "entities_asked": ["'\\x01', 'ptn_1'"],
    "entity_connections": ["'ent_0'"],
    "erase_entity": ["'{ent_0}', '{erased}'"],
    "establish": ["'{ent_9}'"],
    "established": ["'\\x01', null", "null, '\\x01'", "'\\x03', null", "null, '\\x03'"],
    "state": [f"{MINE}, 'ent_0', ''"],
}
LINKS = {
    "by_token": ["sha256('2')"],
    "of_partner": ["'ptn_1', 'lnk_2'", "'ptn_1', 'lnk_3'"],
    **{
        f"page_of_partner{user}{order}": [f"'ptn_1', null, null, 3{given}"]
        for user, given in (("", ""), ("_user", ", 'user'"))
        for order in ("", "_oldest")
    },
    "settle": ["'{lnk_2}', '{redeemed}', '{ent_0}'"],
}
ONBOARDINGS = {
    "by_id": ["'onb_2'"],
    "by_link": ["sha256('2')"],
    "complete": [f"'{{onb_2}}', {AT}"],
    "forget_link": [],
    "of_partner": [f"'ptn_1', '{one}', array[{THEIRS}]" for one in ("onb_2", "onb_5")],
    "page_of_partner": ["'ptn_1', null, null, 3, null"],
}
EVENTS = {
    "about": ["'ptn_1', '{2, 3, 6}', 200"],
    "follow": [f"array[{MINE}], '{{99}}', '{{claim.stage_changed}}', {AT}, '{{paid}}', '{{null}}'"],
    "page": ["'ptn_1', 0, 100, '\"ptn_1\"', 'foreign', 200"],
}


TEAM = """
insert into ledger.partners (partner_id, stream_id, name, email, status, applied_at)
values ('{0}', gen_random_uuid(), 'A name', '', '{1}', '2026-01-01');
insert into ledger.members values ('mem_{0}', '{0}', '\\x01', '2026-01-01');
insert into ledger.api_keys (key_id, partner_id, mode, secret_hash, issued_at)
values ('key_{0}', '{0}', 'live', '', '2026-01-01');
insert into ledger.key_uses values ('key_{0}', '2026-01-01');
insert into ledger.webhook_endpoints (
    endpoint_id, partner_id, mode, url, types, added_at, secret_version
) values ('wh_{0}', '{0}', 'live', 'https://{0}.example/', '', '2026-01-01', {2});
"""
ACCOUNTS = Tenants(
    ledger="accounts",
    tenant="ptn_1",
    whose=["partner_id", "endpoint_id", "key_id", "member_id"],
    own=[TEAM.format("ptn_1", "approved", 1), TEAM.format("ptn_1", "pending", 1)],
    others=TEAM.format("ptn_2", "approved", 2) + TEAM.format("ptn_3", "revoked", 2),
    of_all=["partners_of_address"],
)
PARTNER_LISTS = {
    "last_events": [],
    "list_members": ["'ptn_1'"],
    "list_partners": ["'ptn_1'"],
    "member": ["'ptn_1', '\\x01'"],
    "moments_of_keys": ["'{key_ptn_1}'"],
    "partners_of_address": ["'\\x01', 10"],
    "rebind_key": ["'{key_ptn_1}', array['\\x02'::bytea], '{2}'"],
    "remove_member": [f"'{{mem_ptn_1}}', {AT}"],
    "reset_sandbox": [f"'{{ptn_1}}', '{{2}}', {AT}"],
    "revoke_key": [f"'{{key_ptn_1}}', {AT}, '{{true}}'"],
    "sandbox": ["'ptn_1'"],
    "set_settings": ["'{ptn_1}', '{true}', '{true}'"],
    "set_status": ["'{ptn_1}', '{revoked}'"],
}
ENDPOINTS = {
    "change": ["'{wh_ptn_1}', '{https://new.example/}', '{x}'"],
    "disable": [f"'{{wh_ptn_1}}', '{{gone}}', {AT}"],
    "list_endpoints": ["'ptn_1'"],
    "rotate": [f"'{{wh_ptn_1}}', '{{2}}', {AT}"],
    "sendable": ["'{wh_ptn_1}'"],
}
OF_ALL = ("count_by_stage", *(one for one in CLAIMS if one.startswith("page_of_partner")))
"""A partner's claims of all businesses."""
OF_ONE = {
    name: [] if name in OF_ALL and "entity" not in name else given for name, given in CLAIMS.items()
}
TABLES = [
    ("projections.claim_list", PARTNERS, CLAIMS),
    ("projections.claim_list", BUSINESSES, OF_ONE),
    ("projections.connections", PARTNERS, CONNECTIONS),
    ("projections.connections", BUSINESSES, CONNECTIONS),
    ("projections.connect_links", PARTNERS, LINKS),
    ("projections.onboardings", PARTNERS, ONBOARDINGS),
    ("projections.onboardings", BUSINESSES, ONBOARDINGS | {"page_of_partner": []}),
    ("projections.partner_events", PARTNERS, EVENTS),
    ("projections.partners", ACCOUNTS, PARTNER_LISTS),
    ("projections.endpoints", ACCOUNTS, ENDPOINTS),
    ("service.onboardings", PARTNERS, {"context": [f"{MINE}, 'ptn_1', '\\x03', '\\x03', ''"]}),
    ("service.partners", ACCOUNTS, {"pending_of_address": ["'\\x01'"]}),
]
