"""A claim's uploads and documents, and what is checked for a partner, are theirs alone."""

# ruff: noqa: S608 - what is put together is ours
from tests.apart.tenants import Tenants

NOW, LATER = "timestamptz '2026-01-01'", "timestamptz '2026-01-02'"
STREAM = "'{0}0000000-0000-0000-0000-000000000000'"
ROWS = f"""
with written as (
    insert into ledger.events (originator_id, originator_version, topic, state)
    values ({STREAM}, 1, 'DocumentsAttached', '{{0}}') returning append_id
)
insert into ledger.log select {{0}}, append_id, sha256('') from written;
insert into ledger.entities (entity_id, stream_id, name, established, registered_at)
values ('ent_{{0}}', {STREAM}, 'A name', true, {NOW});
insert into ledger.uploads values ('/{{0}}', {STREAM}, '', 1, {{1}}, {{2}});
insert into ledger.document_checks (
    position, document_id, stream_id, claim_id, storage_path, mime_type, size, generation, noted_at,
    next_attempt_at, partner_id
) values ({{0}}, 'doc_{{0}}', {STREAM}, 'clm_{{0}}', '', '', 1, 1, {NOW}, {NOW}, 'ptn_{{0}}');
"""
DOCUMENT = "insert into ledger.claim_documents values ('doc_{0}', 'clm_{0}', '/{0}', '', 1, 1, '');"
CLAIMS = Tenants(
    ledger="live",
    tenant="/1",
    whose=["partner_id", "claim_stream", "storage_path", "originator_id"],
    own=[
        ROWS.format(1, NOW, "null"),
        ROWS.format(1, NOW, LATER),
        ROWS.format(1, NOW, "null") + DOCUMENT.format(1),
    ],
    others=ROWS.format(2, LATER, LATER) + ROWS.format(3, LATER, "null") + DOCUMENT.format(3),
    of_all=["orphans"],
)
MINE, NONE = STREAM.format(1), STREAM.format(4)
NEW = f"'{{9}}', array[{MINE}::uuid], array[{NOW}], '{{ptn_1}}', '{{clm_1}}', '{{doc_9}}'"
ARGUMENTS = {
    "begun": [f"array[{MINE}::uuid]", f"array[{NONE}::uuid]"],
    "checks_attached": ["'{1}'"],
    "checks_done": ["1, 'doc_1'"],
    "checks_due": [],
    "checks_note": [f"{NEW}, '{{/9}}', '{{x}}', '{{1}}', '{{1}}'"],
    "checks_remove": ["1"],
    "checks_take": [f"{LATER}, 10, {LATER}, 'ptn_1'"],
    "checks_turn": [],
    "checks_wait": [f"1, 'doc_1', {LATER}"],
    "context": [f"{one}, 'ent_1', {one}, '{{/1, /3}}', ''" for one in (MINE, NONE)],
    "forget": [f"'/1', {LATER}"],
    "forgotten": ["'/1'"],
    "known": ["'{/1, /9}'"],
    "mint": [f"'/9', {MINE}, '', 1, {NOW}, 2"],
    "orphans": [f"{LATER}, '', 100"],
    "sweep_alone": [],
    "unforget": ["'{/1}'"],
}
TABLES = [("service.documents", CLAIMS, ARGUMENTS)]
