"""What is to be done now is due now by the database's clock, also where a process's is ahead."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg

from service.core.clock import system_clock
from service.ledger.sql import queries

AHEAD = system_clock() + timedelta(days=2)
STREAM = UUID(int=7)
ROWS = """
insert into live.entities (entity_id, stream_id, name, established, registered_at, stage_mails)
values ('ent_1', gen_random_uuid(), '', true, now(), true);
insert into live.claim_list (
    claim_id, append_id, stream_id, partner_id, entity_id, partner_claim_id, partner_invoice_ids,
    stage, created_at
) values ('clm_1', 1, gen_random_uuid(), 'ptn_1', 'ent_1', 'case-1', '', 'received', now());
insert into live.mail_outbox (message_id, stream_id, noted_at, next_attempt_at)
values ('shared', gen_random_uuid(), now(), now());
insert into live.webhook_queues (endpoint_id, partner_id, position)
select 'wh_' || name, 'ptn_1', 0 from unnest(array['note', 'test', 'release', 'untie', 'resume'])
    as named (name);
insert into live.webhook_deliveries
select 'wh_' || name, 1, 'clm_1', 'x', now(), 0, due
from (values ('release', 'infinity'::timestamptz), ('untie', 'infinity'), ('resume', now()))
    as waiting (name, due);
update live.webhook_queues set waits_until = 'infinity'
where endpoint_id in ('wh_release', 'wh_resume')
"""
QUEUEING: list[tuple[str, str, list[Any]]] = [
    ("service.claims", "hand_overs_note", [[1], [STREAM], [AHEAD]]),
    ("service.mail", "outbox_note", [["a"], [STREAM], [1], [AHEAD]]),
    ("service.mail", "outbox_note_stages", [["b"], [STREAM], [2], [AHEAD], ["clm_1"], 3]),
    ("service.mail", "outbox_share", ["shared", ".", ["who"], AHEAD]),
    (
        "service.documents",
        "checks_note",
        [[1], [STREAM], [AHEAD], ["ptn_1"], ["clm_1"], ["doc_1"], ["path"], ["text/csv"], [1], [1]],
    ),
    ("service.webhooks", "note", ["wh_note", 0, 1, [1], ["clm_1"], ["x"], AHEAD]),
    ("service.webhooks", "test", ["wh_test", AHEAD, "test", 1, 1]),
    ("service.webhooks", "release", ["wh_release", 1, AHEAD, 1.0]),
    ("service.webhooks", "untie", ["wh_untie", AHEAD]),
    ("service.webhooks", "resume", ["wh_resume", AHEAD, 1.0]),
]
"""Whatever queues something that is due at once."""
LATE = """
select array_agg(key) from (
    select 'hand-over ' || position, greatest(noted_at, next_attempt_at) from live.hand_overs
    union all
    select 'mail ' || message_id, greatest(noted_at, next_attempt_at) from live.mail_outbox
    union all
    select 'check ' || document_id, greatest(noted_at, next_attempt_at) from live.document_checks
    union all
    select endpoint_id, greatest(noted_at, next_attempt_at) from live.webhook_deliveries
    union all
    select endpoint_id || ' waits', waits_until - interval '1 second' from live.webhook_queues
) as due (key, at)
where at > now()
"""
COUNTS = """
select
    (select count(*) from live.hand_overs), (select count(*) from live.mail_outbox),
    (select count(*) from live.document_checks), (select count(*) from live.webhook_deliveries)
"""


def test_nothing_waits_for_the_clock_of_a_process_that_is_ahead(owner, database_url):
    """Neither for that of whoever queues it, nor for that of whoever wrote the event."""
    owner.execute(ROWS)
    with psycopg.connect(database_url) as one:
        for package, name, values in QUEUEING:
            psycopg.RawCursor(one).execute(queries(package)[name].on("live").encode(), values)
    assert owner.execute(COUNTS).fetchone() == (1, 4, 1, 5)
    assert owner.execute(LATE).fetchone() == (None,)


def test_a_clock_that_is_ahead_gets_no_more_test_events(owner, database_url):
    """What was delivered within the hour counts, by the database's clock."""
    owner.execute(ROWS)
    owner.execute(
        "insert into live.webhook_log values ('wh_test', now(), -1, 'test-1', 'test', 1, 200, 1)"
    )
    with psycopg.connect(database_url) as one:
        statement = queries("service.webhooks")["test"].on("live").encode()
        values = ["wh_test", AHEAD, "test", 1, 1]
        assert psycopg.RawCursor(one).execute(statement, values).fetchall() == []
