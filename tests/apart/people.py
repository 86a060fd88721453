"""A person's sessions, sign-in links and places on the team are their own."""

# ruff: noqa: S608 - what is put together is ours
from tests.apart.tenants import Tenants

SESSIONS = """
insert into ledger.sessions (
    session_id, token_hash, address_hash, person_id, started_at, expires_at, wrapped, master_key_id
)
select
    'ses_' || n, sha256(n::text::bytea), '\\x0{0}', 'per_{0}', now() - n * interval '1 minute',
    until, '', 'key'
from (values {1}) as rows (n, until);
"""
LINKS = """
insert into ledger.sign_in_links (
    link_id, token_hash, address_hash, recipient_hash, asked_at, expires_at, wrapped,
    master_key_id, mail_state, mail_next_at
)
select
    'lnk_' || n, sha256(n::text::bytea), '\\x0{0}', '\\x0{0}', now(), until, '', 'key', '{2}', now()
from (values {1}) as rows (n, until);
"""
STAFF = "insert into ledger.staff values ('stf_{0}', lpad('{0}', 32, '0')::uuid, '\\x0{0}', now());"
HOLDS, ENDED = "timestamptz '2999-01-01'", "'2020-01-01'"
PEOPLE = Tenants(
    ledger="accounts",
    tenant="per_1",
    whose=["person_id", "address_hash", "recipient_hash", "token_hash", "link_id", "session_id"],
    own=[
        f"""
        {SESSIONS.format(1, f"(1, {HOLDS}), (2, {HOLDS}), (3, {ENDED})")}
        {LINKS.format(1, f"(1, {HOLDS}), (2, {ENDED})", "waiting")}
        {STAFF.format(1)}
        insert into ledger.sign_outs values ('per_3', '2020-01-01')
        """
    ],
    others=f"""
    {SESSIONS.format(2, f"(0, {HOLDS}), (4, {HOLDS})")}
    {LINKS.format(2, f"(3, {HOLDS}), (4, {HOLDS})", "sent")}
    {STAFF.format(2)}
    insert into ledger.sign_outs values ('per_2', now())
    """,
)
OURS, NEW = "sha256('1')", "sha256('new')"
ARGUMENTS = {
    "anyone": [],
    "expired_links": ["'1 hour', 100"],
    "expired_sessions": ["'1 hour', 100"],
    "expired_sign_outs": ["'1 hour', 100"],
    "forget_links": ["'\\x01'"],
    "forget_sessions": ["'\\x01'"],
    "hold_sessions": ["'per_1'"],
    "link_ask": [
        f"'lnk_5', {NEW}, '\\x01', '\\x01', now(), now(), '', 'key', '1 hour', {most}, now()"
        for most in (2, 3)
    ],
    "link_lock": [],
    "link_look": [OURS],
    "link_use": [OURS],
    "list": [],
    "mail_due": [],
    "mail_read": ["'lnk_1', 0", "'lnk_3', 0"],
    "mail_settle": ["'lnk_1', 0, 'sent', 1, '1 hour'"],
    "mail_take": ["10, '1 hour'"],
    "mark_holds": ["'per_1', now(), '1 hour'"],
    "now": [],
    "session_begin": [f"{NEW}, 'ses_5', '\\x01', 'per_1', now(), {HOLDS}, '', 'key'"],
    "session_end": [OURS],
    "session_end_one": ["'per_1', 'ses_1'", "'per_1', 'ses_4'"],
    "session_end_others": ["'per_1', 'ses_1'"],
    "session_known": ["'per_1'", "'per_3'"],
    "session_last": ["'per_1'"],
    "session_list": ["'per_1', '1 day', 2"],
    "session_read": [f"{OURS}, '1 day', '1 hour'"],
    "session_seen": [f"{OURS}, '', now(), 'new', 'key'"],
    "sign_out_note": ["'per_1'"],
    "staff_address": ["'stf_1'"],
}
TABLES = [("service.people", PEOPLE, ARGUMENTS)]
