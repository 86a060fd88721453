-- How far each webhook endpoint was given its partner's events: all up to a position are delivered, or
-- among the deliveries that are open. `failures` counts attempts since the last one that succeeded.
create table ledger.webhook_queues (
    endpoint_id text collate "C" primary key,
    partner_id text collate "C" not null,
    position bigint not null,
    is_active boolean not null default true,
    failures int not null default 0,
    failing_since timestamptz,
    waits_until timestamptz not null default '-infinity'
) with (fillfactor = 70);

-- Events that are still to be delivered to an endpoint, a bounded number of each. A test event, which no
-- log has, is at a negative position. The table churns: vacuum it early.
create table ledger.webhook_deliveries (
    endpoint_id text collate "C" not null,
    position bigint not null,
    subject text collate "C" not null,
    type text not null,
    noted_at timestamptz not null,
    attempts int not null default 0,
    next_attempt_at timestamptz not null,
    fault text,
    primary key (endpoint_id, position)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, fillfactor = 70);
create index webhook_deliveries_due on ledger.webhook_deliveries (endpoint_id, next_attempt_at);
create index webhook_deliveries_by_subject
on ledger.webhook_deliveries (endpoint_id, subject, position);

-- What was delivered in the last thirty days, for the console: of what was sent again, the last time.
create table ledger.webhook_log (
    endpoint_id text collate "C" not null,
    delivered_at timestamptz not null,
    position bigint not null,
    subject text collate "C" not null,
    type text not null,
    attempts int not null,
    status smallint not null,
    duration_ms real not null,
    fault text,
    primary key (endpoint_id, position)
);
create index webhook_log_of_endpoint on ledger.webhook_log (endpoint_id, delivered_at, position);
create index webhook_log_by_age on ledger.webhook_log (delivered_at);

grant select, insert, update, delete
on ledger.webhook_queues, ledger.webhook_deliveries, ledger.webhook_log to claim_ledger_of;
