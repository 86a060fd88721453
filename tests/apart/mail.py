"""What becomes of a mail, and how many go to a mailbox, does not follow from others' mail."""

# ruff: noqa: S608 - what is put together is ours
from tests.apart.tenants import Tenants

NOW, LATER = "timestamptz '2026-01-01'", "timestamptz '2026-01-02'"
CLAIM = f"""
insert into ledger.entities (
    entity_id, stream_id, name, established, registered_at, stage_mails
) values ('ent_{{0}}', gen_random_uuid(), 'A name', true, {NOW}, {{1}});
insert into ledger.claim_list (
    claim_id, append_id, stream_id, partner_id, entity_id, partner_claim_id, partner_invoice_ids,
    stage, created_at
)
values (
    'clm_{{0}}', {{0}}, gen_random_uuid(), 'ptn_{{0}}', 'ent_{{0}}', 'x', '[]', 'paid', {NOW}
);
"""
MAIL = """
insert into ledger.mail_outbox (
    message_id, stream_id, version, noted_at, next_attempt_at, state
) values ('{0}', gen_random_uuid(), 1, {1}, {1}, '{2}');
"""
COUNTED = "insert into ledger.mail_recipients values ('{}', '{}', '\\x0{}', '{}');"
MAILBOXES = Tenants(
    ledger="live",
    tenant="msg_1",
    whose=["message_id", "claim_id", "entity_id", "partner_id", "recipient_hash"],
    own=[
        f"""
        {CLAIM.format(1, wanted)}
        {MAIL.format("msg_1", NOW, state)}
        {COUNTED.format("msg_1", "ptn_1", 1, "2026-01-01")}
        """
        for wanted, state in (("true", "waiting"), ("false", "sent"))
    ],
    others=f"""
    {CLAIM.format(2, "true")}
    {MAIL.format("msg_2", LATER, "waiting")}
    {MAIL.format("msg_3", NOW, "sent")}
    {COUNTED.format("msg_2", "ptn_2", 1, "2999-01-01")}
    {COUNTED.format("msg_3", "ptn_1", 2, "2999-01-01")}
    {COUNTED.format("msg_4", "ptn_2", 3, "2999-01-01")}
    """,
    of_all=["outbox_waiting"],
)
ARGUMENTS = {
    "claim_told": ["'clm_1'"],
    "entity_used": ["'ptn_1', 'ent_1'", "'ptn_1', 'ent_2'", "'ptn_2', 'ent_1'"],
    "outbox_any_sent": ["'{msg_1}', '~'"],
    "outbox_due": [],
    "outbox_hold": ["'msg_1', 0"],
    "outbox_note": [f"'{{msg_5}}', '{{{'0' * 32}}}', '{{1}}', array[{NOW}]"],
    "outbox_note_stages": [f"'{{msg_5}}', '{{{'0' * 32}}}', '{{1}}', array[{NOW}], '{{clm_1}}', 1"],
    "outbox_sent": ["'msg_1'"],
    "outbox_settle": [f"'msg_1', 0, 'sent', 1, {LATER}"],
    "outbox_share": [f"'msg_1', '~', '{{x, y}}', {LATER}"],
    "outbox_take": [f"{NOW}, '{{}}', 10, 10"],
    "outbox_waiting": [""],
    "recipient_admit": [
        f"'msg_5', 'ptn_1', '\\x01', {NOW}, '2025-01-01', 100, 2, 100",
        f"'msg_5', 'ptn_1', '\\x01', {NOW}, '2025-01-01', 1, 2, 100",
        f"'msg_5', 'ptn_1', '\\x03', {NOW}, '2025-01-01', 100, 2, 0",
    ],
    "recipient_forget": ["'2026-03-01', '30 days', 100"],
    "recipient_try_lock": [],
}
TABLES = [("service.mail", MAILBOXES, ARGUMENTS)]
