-- name: aside
-- The claims (or connections, or links) of which an endpoint took an event in none of the attempts.
select
    subject, count(*) as events, min(position) as position, min(noted_at) as noted_at,
    max(fault) as fault, max(attempts) as attempts
from ledger.webhook_deliveries
where endpoint_id = $1 and next_attempt_at = 'infinity'
group by subject
order by min(position)
limit $2

-- name: begin
-- An endpoint is given its partner's events after a position.
insert into ledger.webhook_queues (endpoint_id, partner_id, position) values ($1, $2, $3)
on conflict do nothing

-- name: delivered
-- The last deliveries to an endpoint, newest first, before a given one (null: from the newest on).
select delivered_at, position, subject, type, attempts, status, duration_ms, fault
from ledger.webhook_log
where
    endpoint_id = $1
    and (delivered_at, position)
    < (coalesce($2::timestamptz, 'infinity'), coalesce($3::bigint, 0))
order by delivered_at desc, position desc
limit $4

-- name: done
-- Deliveries were made: they leave the queue for the log, and the endpoint does not fail any more.
with gone as (
    delete from ledger.webhook_deliveries as d
    using unnest($2::bigint[], $3::smallint[], $4::real[]) as m (position, status, duration_ms)
    where d.endpoint_id = $1 and d.position = m.position
    returning d.position, d.subject, d.type, d.attempts, d.fault, m.status, m.duration_ms
), noted as (
    insert into ledger.webhook_log (
        endpoint_id, delivered_at, position, subject, type, attempts, status, duration_ms, fault
    )
    select $1, $5, position, subject, type, attempts, status, duration_ms, fault from gone
    on conflict (endpoint_id, position) do update set
        delivered_at = excluded.delivered_at, attempts = excluded.attempts,
        status = excluded.status, duration_ms = excluded.duration_ms, fault = excluded.fault
)
update ledger.webhook_queues set failures = 0, failing_since = null, waits_until = '-infinity'
where endpoint_id = $1 and (failures > 0 or failing_since is not null)

-- name: drop_unwanted
-- What was queued for an endpoint of types that it does not want any more; test events stay.
delete from ledger.webhook_deliveries
where endpoint_id = $1 and position > 0 and type <> all($2::text[])

-- name: due
-- Endpoints that something can be delivered to now, or queued for, but some that are being served here or
-- take nothing, in no order that anybody could take advantage of.
select q.endpoint_id, q.partner_id
from ledger.webhook_queues as q
where
    q.is_active and q.waits_until <= $1 and q.endpoint_id <> all($2::text[])
    and (
        exists(
            select from ledger.webhook_deliveries as d
            where
                d.endpoint_id = q.endpoint_id and d.next_attempt_at <= $1
                and not exists(
                    select from ledger.webhook_deliveries as earlier
                    where
                        earlier.endpoint_id = d.endpoint_id and earlier.subject = d.subject
                        and earlier.position + 0 < d.position
                    offset 0
                )
            offset 0
        )
        or (
            exists(
                select from ledger.partner_events as e
                where e.partner_id = q.partner_id and e.position > q.position
            )
            and (
                select count(*) from (
                    select from ledger.webhook_deliveries as d
                    where d.endpoint_id = q.endpoint_id and d.next_attempt_at < 'infinity' limit $3
                ) as open_deliveries
            ) < $3
        )
    )
order by random()
limit $4

-- name: end
-- An endpoint was removed: nothing is queued for it any more, once this is committed.
delete from ledger.webhook_queues where endpoint_id = $1

-- name: end_deliveries
-- What was still to be delivered to an endpoint that was removed. After `end`, which waits for whoever
-- is just filling the queue: this sees what they queued.
delete from ledger.webhook_deliveries where endpoint_id = $1

-- name: failed
-- An attempt failed: it is due again later. An endpoint of which several rounds of attempts failed in a
-- row ($6 is 1 for the first failure of a round, else 0) waits, too, as it does if it asked for that ($9).
-- Since when it fails does not count where it has not failed: somebody else wrote that.
with late as (
    update ledger.webhook_deliveries set next_attempt_at = $3, fault = $4
    where endpoint_id = $1 and position = $2
)
update ledger.webhook_queues as q set
    failures = least(q.failures + $6, 1000000),
    failing_since = case when q.failures > 0 then coalesce(q.failing_since, $5) else $5 end,
    waits_until = $5::timestamptz + make_interval(secs => greatest(
        $9::float8,
        case when q.failures + $6 < $7 then 0 else least(2 ^ least(q.failures + $6, 20), $8) end
    ))
where q.endpoint_id = $1
returning q.failing_since

-- name: log_delete
-- Deletes deliveries that are older than $2, a bounded number at a time. Returns how many. A process's
-- clock ($1) that is ahead makes nothing old.
with gone as (
    delete from ledger.webhook_log as l using (
        select endpoint_id, position from ledger.webhook_log
        where delivered_at < least($1::timestamptz, now()) - $2::interval
        order by delivered_at
        limit $3
    ) as old
    where l.endpoint_id = old.endpoint_id and l.position = old.position
    returning 1
)
select count(*) as deleted from gone

-- name: log_end
-- The last position of the log.
select size from ledger.head

-- name: note
-- Queues what follows for an endpoint, and moves its position there, unless that has moved meanwhile;
-- returns a row if it has not. What follows something that was set aside is set aside with it. The rest
-- is due now, also where a process's clock ($7) is ahead. (For Citus as in `test`.)
with held as (
    select endpoint_id from ledger.webhook_queues
    where endpoint_id = $1 and position = $2 and is_active
    for update
), shared as materialized (
    select least($7::timestamptz, now()) as at
), noted as (
    insert into ledger.webhook_deliveries (
        endpoint_id, position, subject, type, noted_at, next_attempt_at
    )
    select
        h.endpoint_id, n.position, n.subject, n.type, s.at,
        case
            when exists(
                select from ledger.webhook_deliveries as aside
                where
                    aside.endpoint_id = $1 and aside.subject = n.subject
                    and aside.position < n.position and aside.next_attempt_at = 'infinity'
            ) then 'infinity'
            else s.at
        end
    from held as h, shared as s, unnest($4::bigint[], $5::text[], $6::text[]) as n (position, subject, type)
    on conflict do nothing
)
update ledger.webhook_queues as q set position = $3
from held as h where q.endpoint_id = h.endpoint_id
returning q.position

-- name: open
-- The deliveries to an endpoint that are still to be made, in their order: when each is due, and whether
-- one before it goes first.
select
    d.position, d.subject, d.type, d.noted_at, d.attempts, d.fault,
    greatest(d.next_attempt_at, q.waits_until) as next_attempt_at,
    exists(
        select from ledger.webhook_deliveries as earlier
        where
            earlier.endpoint_id = d.endpoint_id and earlier.subject = d.subject
            and earlier.position + 0 < d.position
        offset 0
    ) as in_turn
from ledger.webhook_deliveries as d
join ledger.webhook_queues as q using (endpoint_id)
where d.endpoint_id = $1 and d.next_attempt_at < 'infinity'
order by d.position limit $2

-- name: put_off_full
-- A queue that is full takes nothing before something in it is due: nobody looks at it until then.
update ledger.webhook_queues as q set waits_until = greatest(
    q.waits_until,
    (
        select min(d.next_attempt_at)
        from ledger.webhook_deliveries as d
        where
            d.endpoint_id = $1 and d.next_attempt_at < 'infinity'
            and not exists(
                select from ledger.webhook_deliveries as earlier
                where
                    earlier.endpoint_id = d.endpoint_id and earlier.subject = d.subject
                    and earlier.position + 0 < d.position
                offset 0
            )
    )
)
where q.endpoint_id = $1 and q.failures > 0

-- name: release
-- What was set aside of the claim (or connection, or link) of an event ($2) is due again, as if it had
-- never been tried, after a rest of $4 seconds at most: now, also where a process's clock ($3) is ahead.
with released as (
    update ledger.webhook_deliveries as d
    set attempts = 0, next_attempt_at = least($3::timestamptz, now())
    where
        d.endpoint_id = $1 and d.next_attempt_at = 'infinity'
        and exists(
            select from ledger.webhook_deliveries as e
            where e.endpoint_id = $1 and e.position = $2 and e.subject = d.subject
            offset 0
        )
)
update ledger.webhook_queues
set waits_until = least(
    waits_until, least($3::timestamptz, now()) + make_interval(secs => $4::float8)
)
where endpoint_id = $1

-- name: rename
-- What an earlier release queued under what brought an entity ($2) gets the names under which what
-- follows it is queued now ($3).
update ledger.webhook_deliveries as d set subject = n.line
from unnest($2::text[], $3::text[]) as n (subject, line)
where d.endpoint_id = $1 and d.subject = n.subject

-- name: resume
-- An endpoint was enabled: what is open is due, as if it had never been tried, once the endpoint has had
-- the rest that its failures brought it, of $3 seconds at most; they end with a success. Now, also where
-- a process's clock ($2) is ahead.
with open as (
    update ledger.webhook_deliveries set attempts = 0, next_attempt_at = least($2::timestamptz, now())
    where endpoint_id = $1 and next_attempt_at < 'infinity'
)
update ledger.webhook_queues set
    is_active = true, failing_since = null,
    waits_until = least(
        waits_until, least($2::timestamptz, now()) + make_interval(secs => $3::float8)
    )
where endpoint_id = $1

-- name: rewind
-- What an endpoint was given after a position is queued again.
update ledger.webhook_queues set position = $2
where endpoint_id = $1 and $2::bigint between 0 and position
returning position

-- name: room
-- How far an endpoint came, whether it fails, whether anything is set aside, and for how many deliveries
-- there is room.
select
    q.position, q.failures > 0 as is_failing,
    exists(
        select from ledger.webhook_deliveries
        where endpoint_id = $1 and next_attempt_at = 'infinity'
    ) as has_aside,
    $2 - (
        select count(*) from ledger.webhook_deliveries
        where endpoint_id = $1 and next_attempt_at < 'infinity'
    ) as room
from ledger.webhook_queues as q
where q.endpoint_id = $1 and q.is_active and q.waits_until <= $3

-- name: set_aside
-- A claim (or connection, or link) is set aside: no event of it is attempted until a member asks for it,
-- nor of another that follows one that was. A test event is dropped. Returns how many are aside.
with dropped as (
    delete from ledger.webhook_deliveries
    where endpoint_id = $1 and subject = $2 and position < 0
), noted as (
    update ledger.webhook_deliveries as d
    set next_attempt_at = 'infinity', fault = case when d.position = $3 then $4 else d.fault end
    where
        d.endpoint_id = $1 and d.position > 0 and d.next_attempt_at < 'infinity'
        and (
            d.subject = $2
            or exists(
                select from ledger.webhook_deliveries as aside
                where
                    aside.endpoint_id = $1 and aside.subject = d.subject
                    and aside.position < d.position and aside.next_attempt_at = 'infinity'
            )
        )
    returning 1
)
select
    (select count(*) from noted)
    + (
        select count(*) from ledger.webhook_deliveries
        where endpoint_id = $1 and next_attempt_at = 'infinity'
    ) as aside

-- name: states
-- How endpoints stand. Of what is not queued yet, the types of the next $3 events.
select
    q.endpoint_id, q.position, q.failing_since,
    case when q.waits_until > $2 then q.waits_until end as rests_until,
    (
        select count(*) from ledger.webhook_deliveries as d
        where d.endpoint_id = q.endpoint_id and d.next_attempt_at < 'infinity'
    ) as open,
    (
        select count(*) from ledger.webhook_deliveries as d
        where d.endpoint_id = q.endpoint_id and d.next_attempt_at = 'infinity'
    ) as aside,
    (
        select max(l.delivered_at) from ledger.webhook_log as l where l.endpoint_id = q.endpoint_id
    ) as delivered_at,
    array(
        select distinct e.type from (
            select type from ledger.partner_events
            where partner_id = q.partner_id and position > q.position
            order by position limit $3
        ) as e
    ) as next_types
from ledger.webhook_queues as q
where q.endpoint_id = any($1::text[])

-- name: stop
-- An endpoint was disabled: nothing is attempted.
update ledger.webhook_queues set is_active = false where endpoint_id = $1

-- name: take
-- Counts an attempt of the deliveries to an endpoint that have been due longest, the first of each
-- subject, and returns them. They are due again at $4, should this process be cut off.
with due as (
    select d.position
    from ledger.webhook_deliveries as d
    where
        d.endpoint_id = $1 and d.next_attempt_at <= $2
        and not exists(
            select from ledger.webhook_deliveries as earlier
            where
                earlier.endpoint_id = d.endpoint_id and earlier.subject = d.subject
                and earlier.position + 0 < d.position
            offset 0
        )
    order by d.next_attempt_at, d.position
    limit $3
    for update of d skip locked
)
update ledger.webhook_deliveries as d set attempts = d.attempts + 1, next_attempt_at = $4
from due
where d.endpoint_id = $1 and d.position = due.position
returning d.position, d.subject, d.type, d.noted_at, d.attempts

-- name: test
-- Queues a test event, at a negative position that is nobody else's, unless $4 are waiting or $5 were
-- delivered within the hour. It is sent now, whatever the endpoint waits for, and also where a process's
-- clock ($2) is ahead; one that is refused changes nothing. Citus makes a syntax error of an insert that
-- selects from these tables itself: hence `next`.
with held as (
    select endpoint_id from ledger.webhook_queues
    where endpoint_id = $1 and is_active
    for update
), next as materialized (
    select h.endpoint_id, t.position, least($2::timestamptz, now()) as at
    from held as h,
    (
        select
            least(-(extract(epoch from $2::timestamptz) * 1000000)::bigint, min(d.position) - 1)
                as position
        from ledger.webhook_deliveries as d where d.endpoint_id = $1
    ) as t
    where
        (
            select count(*) from ledger.webhook_deliveries as d
            where d.endpoint_id = $1 and d.position < 0
        ) < $4
        and (
            select count(*) from (
                select from ledger.webhook_log as l
                where
                    l.endpoint_id = $1 and l.position < 0
                    and l.delivered_at > least($2::timestamptz, now()) - interval '1 hour'
                limit $5
            ) as lately
        ) < $5
), added as (
    insert into ledger.webhook_deliveries (
        endpoint_id, position, subject, type, noted_at, next_attempt_at
    )
    select n.endpoint_id, n.position, 'test' || n.position, $3, n.at, n.at
    from next as n
    on conflict do nothing
    returning position
)
update ledger.webhook_queues as q set waits_until = '-infinity'
from added where q.endpoint_id = $1
returning added.position

-- name: untie
-- What was set aside because it follows an event that was, and follows none any more, is due: who set it
-- aside saw the queue as it was before a member had that delivered again, or it was delivered by a
-- process that had stood still.
update ledger.webhook_deliveries as d set next_attempt_at = least($2::timestamptz, now())
where
    d.endpoint_id = $1 and d.next_attempt_at = 'infinity' and d.attempts = 0
    and not exists(
        select from ledger.webhook_deliveries as aside
        where
            aside.endpoint_id = $1 and aside.subject = d.subject
            and aside.position < d.position
            and aside.next_attempt_at = 'infinity' and aside.attempts > 0
    )

-- name: unread
-- Deliveries whose events cannot be read or sent now, by a fault of ours: no attempt of them was made.
update ledger.webhook_deliveries set attempts = greatest(attempts - 1, 0), next_attempt_at = $3
where endpoint_id = $1 and position = any($2::bigint[])
