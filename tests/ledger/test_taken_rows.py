"""What one process takes or holds, another passes over: nothing is done twice, nobody waits."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg

from service.core.clock import system_clock
from service.ledger.sql import queries
from tests.ledger.raw_events import RawEvent, put_into_log

ROWS = """
insert into live.webhook_deliveries values ('wh_1', 1, 'clm_1', 'x', now(), 0, now());
insert into live.hand_overs values (1, gen_random_uuid(), now(), 0, now());
insert into live.document_checks (
    position, document_id, stream_id, claim_id, storage_path, mime_type, size, generation,
    noted_at, next_attempt_at, partner_id
) values (1, 'doc_1', gen_random_uuid(), 'clm_1', '', '', 1, 1, now(), now(), 'ptn_1');
insert into live.mail_outbox (message_id, stream_id, noted_at, next_attempt_at)
values ('msg_1', gen_random_uuid(), now(), now());
insert into accounts.sign_in_links (
    link_id, token_hash, address_hash, wrapped, master_key_id, asked_at, expires_at, mail_next_at
) values ('lnk_1', '', '', '', '', now(), 'infinity', now());
insert into live.subscriptions (name, position) values ('processing', 0)
"""
LATER = system_clock() + timedelta(days=1)
TAKEN: list[tuple[str, str, str, list[Any]]] = [
    ("live", "service.webhooks", "take", ["wh_1", LATER, 10, LATER]),
    ("live", "service.claims", "hand_overs_take", [LATER, 10, 1_000_000, LATER]),
    ("live", "service.documents", "checks_take", [LATER, 10, LATER, "ptn_1"]),
    ("live", "service.mail", "outbox_take", [LATER, [], 10, 10]),
    ("live", "service.mail", "outbox_hold", ["msg_1", 0]),
    ("accounts", "service.people", "mail_take", [10, timedelta(minutes=1)]),
    ("live", "service.ledger", "sequencer_hold", []),
    ("live", "service.ledger.following", "subscription_hold", ["processing"]),
    ("live", "service.evidence.tree", "hold_nodes", []),
    ("live", "service.evidence.verify", "slices_hold", []),
]


def test_what_is_being_taken_is_passed_over(owner, database_url):
    """By a statement that begins before the other's transaction has ended, of each of these."""
    put_into_log(owner, 1, RawEvent(UUID(int=7), 1, "FirstMessagePosted", b""))
    owner.execute(ROWS)
    with psycopg.connect(database_url) as first, psycopg.connect(database_url) as second:
        for ledger, package, name, values in TAKEN:
            statement = queries(package)[name].on(ledger).encode()
            taken = psycopg.RawCursor(first).execute(statement, values).fetchall()
            second.execute("set local lock_timeout = '1s'")
            passed_over = psycopg.RawCursor(second).execute(statement, values).fetchall()
            first.rollback()
            second.rollback()
            assert (len(taken), passed_over) == (1, []), name
