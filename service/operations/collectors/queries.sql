-- name: document_check_oldest
-- For how many seconds the first document in the log's order waits for its check; no row for none.
select greatest(0, extract(epoch from now() - noted_at))::float8 as seconds
from ledger.document_checks
order by position
limit 1

-- name: event_after
-- The state of the event after a position (its time is in there); no row where none has a number.
select e.state
from ledger.log as l
cross join lateral (
    select i.state from ledger.events as i where i.append_id = l.append_id offset 0
) as e
where l.position = $1::bigint + 1

-- name: hand_over_backlog
-- How many hand-overs to processing wait, and since when the oldest does.
select count(*) as waiting, min(noted_at) as oldest_at from ledger.hand_overs

-- name: mail_backlog
-- How many sign-in mails wait, for how many seconds the oldest does, and how many were not sent:
-- refused, or of no use any more before the mail server took them. Old links are deleted.
select
    count(*) filter (where mail_state = 'waiting' and expires_at > now()) as waiting,
    coalesce(
        extract(epoch from now() - min(asked_at) filter (
            where mail_state = 'waiting' and expires_at > now()
        )),
        0
    )::float8 as oldest_seconds,
    count(*) filter (
        where mail_state = 'failed' or (mail_state = 'waiting' and expires_at <= now())
    ) as failed
from ledger.sign_in_links

-- name: oldest_transaction
-- Seconds since the oldest transaction began that is still open; the function says whose. The next
-- transaction id; and whether the snapshot of a replication slot is older than such an id ($1), unless
-- that is of a database that this one was restored over. A slot that was invalidated keeps nothing.
select
    ledger.oldest_transaction_seconds() as seconds,
    pg_snapshot_xmax(pg_current_snapshot())::xid as next_xid,
    age($1::xid) >= 0 and exists(
        select from pg_replication_slots as s
        where
            s.wal_status is distinct from 'lost'
            and greatest(age(s.xmin), age(s.catalog_xmin)) > age($1::xid)
    ) as is_behind

-- name: outbox_backlog
-- How many mails wait, since when the oldest does, how many were given up, and how many withheld from
-- mailboxes that had enough: by partial indexes. Notices ($1) refer to an event, by its version.
select
    (
        select count(*) from ledger.mail_outbox
        where state = 'waiting' and (version is not null) = $1
    ) as waiting,
    (
        select min(noted_at) from ledger.mail_outbox
        where state = 'waiting' and (version is not null) = $1
    ) as oldest_at,
    (
        select count(*) from ledger.mail_outbox
        where state = 'failed' and (version is not null) = $1
    ) as failed,
    (
        select count(*) from ledger.mail_outbox
        where state = 'withheld' and (version is not null) = $1
    ) as withheld

-- name: webhooks
-- How many endpoints take events, fail, or were disabled; and for how many seconds the first delivery of
-- a claim has been due that has waited longest for an endpoint that does not fail.
select
    count(*) filter (where q.is_active and q.failing_since is null) as active,
    count(*) filter (where q.is_active and q.failing_since is not null) as failing,
    count(*) filter (where not q.is_active) as disabled,
    greatest(0, coalesce(max(extract(epoch from now() - due.since)), 0))::float8 as oldest_seconds
from ledger.webhook_queues as q
left join lateral (
    select min(d.next_attempt_at) as since
    from ledger.webhook_deliveries as d
    where
        d.endpoint_id = q.endpoint_id and d.next_attempt_at <= now()
        and not exists(
            select from ledger.webhook_deliveries as earlier
            where
                earlier.endpoint_id = d.endpoint_id and earlier.subject = d.subject
                and earlier.position < d.position
        )
) as due on q.is_active and q.failing_since is null
