"""What is still to be delivered to an endpoint is apart from what is to any other."""

# ruff: noqa: S608 - what is put together is ours
from tests.apart.tenants import Tenants

NOW, SOON, LATER = (f"'2026-01-0{day} 12:00+00'::timestamptz" for day in (1, 2, 3))
QUEUE = """
insert into ledger.webhook_queues (
    endpoint_id, partner_id, position, failures, failing_since, waits_until
) values
"""
DELIVERIES = """
insert into ledger.webhook_deliveries (
    endpoint_id, position, subject, type, noted_at, attempts, next_attempt_at
) values
"""
LOG = """
insert into ledger.webhook_log (
    endpoint_id, position, subject, type, attempts, status, duration_ms, delivered_at
) values
"""
EVENTS = f"""
insert into ledger.partner_events (stream_id, position, partner_id, type, at)
select gen_random_uuid(), position, {{}}, {{}}, {NOW} from generate_series({{}}) as position
"""
OURS = EVENTS.format("'ptn_1'", "'x'", "1, 9")
OPEN = f"""
{OURS};
{QUEUE} ('wh_1', 'ptn_1', 9, 3, {NOW}, '-infinity');
{DELIVERIES}
('wh_1', 2, 'clm_a', 'x', {NOW}, 1, {NOW}), ('wh_1', 4, 'clm_b', 'x', {NOW}, 0, {SOON}),
('wh_1', -1, 'test-1', 'x', {NOW}, 0, {LATER});
{LOG}
('wh_1', 5, 'clm_a', 'x', 1, 200, 1, '2020-01-01'), ('wh_1', 6, 'clm_a', 'x', 1, 200, 1, {NOW})
"""
"""Deliveries of two claims, the later event of each, and a test event; and what was delivered."""
ASIDE = f"""
{OURS};
{QUEUE} ('wh_1', 'ptn_1', 9, 0, null, {LATER});
{DELIVERIES}
('wh_1', 2, 'clm_a', 'x', {NOW}, 0, 'infinity'),
('wh_1', 3, 'clm_c', 'x', {NOW}, 5, 'infinity'), ('wh_1', 4, 'clm_c', 'x', {NOW}, 0, 'infinity')
"""
"""What follows an event that was set aside, with it and without it any more."""
IDLE = f"{OURS}; {QUEUE} ('wh_1', 'ptn_1', 9, 0, null, '-infinity')"
BEHIND = f"{OURS}; {QUEUE} ('wh_1', 'ptn_1', 5, 0, null, '-infinity')"


def others(endpoint_id):
    """Return rows of another endpoint at the same positions, and others, of the same claims."""
    queued = [
        (1, "clm_a", 3, "'infinity'"),
        (2, "clm_d", 0, "'2025-01-01'"),
        (3, "clm_b", 3, "'infinity'"),
        (4, "clm_b", 0, NOW),
        (7, "clm_c", 2, "'infinity'"),
        (8, "clm_a", 0, NOW),
        (9, "clm_e", 0, "'infinity'"),
        (-1, "test-1", 0, "'2025-01-01'"),
        (-(2**62), "test-2", 0, NOW),
    ]
    rows = [
        f"('{endpoint_id}', {position}, '{subject}', 'z', {NOW}, {attempts}, {due})"
        for position, subject, attempts, due in queued
    ]
    delivered = [
        f"('{endpoint_id}', {position}, 'clm_a', 'z', 1, 200, 1, '2999-01-01')"
        for position in (-5, 2, 5, 6, 7)
    ]
    return f"{DELIVERIES} {', '.join(rows)}; {LOG} {', '.join(delivered)}"


ENDPOINTS = Tenants(
    ledger="live",
    tenant="wh_1",
    whose=["endpoint_id", "partner_id"],
    own=[OPEN, ASIDE, IDLE, BEHIND],
    others=f"""
    {EVENTS.format("'ptn_2'", "'z'", "10, 12")};
    {QUEUE}
    ('wh_2', 'ptn_1', 9, 7, {NOW}, {LATER}), ('wh_3', 'ptn_2', 9, 7, {NOW}, '-infinity');
    {others("wh_2")};
    {others("wh_3")}
    """,
    of_all=["due"],
)
ARGUMENTS = {
    "aside": ["'wh_1', 100"],
    "begin": ["'wh_9', 'ptn_1', 3"],
    "delivered": ["'wh_1', null, null, 100"],
    "done": [f"'wh_1', '{{2}}', '{{200}}', '{{1}}', {NOW}"],
    "drop_unwanted": ["'wh_1', '{y}'"],
    "due": [f"{NOW}, '{{}}', 2, 100"],
    "end": ["'wh_1'"],
    "end_deliveries": ["'wh_1'"],
    "failed": [f"'wh_1', 2, {LATER}, 'fault', {NOW}, 1, 3, 3600, 0"],
    "log_delete": [f"{NOW}, '30 days', 100"],
    "log_end": [],
    "note": [f"'wh_1', 9, 12, '{{11, 12}}', '{{clm_b, clm_a}}', '{{x, x}}', {NOW}"],
    "open": ["'wh_1', 100"],
    "put_off_full": ["'wh_1'"],
    "release": [f"'wh_1', {position}, {NOW}, 60" for position in (3, 8)],
    "rename": ["'wh_1', '{clm_a}', '{connection}'"],
    "resume": [f"'wh_1', {NOW}, 60"],
    "rewind": ["'wh_1', 3"],
    "room": [f"'wh_1', 100, {NOW}"],
    "set_aside": ["'wh_1', 'clm_a', 2, 'fault'", "'wh_1', 'test-1', -1, 'fault'"],
    "states": [f"'{{wh_1}}', {NOW}, 100"],
    "stop": ["'wh_1'"],
    "take": [f"'wh_1', {NOW}, 100, {LATER}"],
    "test": [f"'wh_1', {NOW}, 'webhook.test', 2, 1"],
    "unread": [f"'wh_1', '{{2}}', {NOW}"],
    "untie": [f"'wh_1', {NOW}"],
}
TABLES = [("service.webhooks", ENDPOINTS, ARGUMENTS)]
