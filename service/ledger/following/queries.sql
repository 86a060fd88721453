-- name: parked_events
-- The next parked events of a stream, at most $3, until they have $4 bytes.
with batch as (
    select position from ledger.parked
    where read_model = $1 and stream_id = $2
    order by position
    limit $3
), measured as (
    select
        b.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state, e.mac,
        sum(octet_length(e.state)) over w as bytes_before
    from batch as b
    cross join lateral (
        select i.append_id from ledger.log as i where i.position = b.position offset 0
    ) as l
    cross join lateral (
        select i.append_id, i.originator_id, i.originator_version, i.topic, i.state, i.mac
        from ledger.events as i where i.append_id = l.append_id offset 0
    ) as e
    window w as (order by b.position rows between unbounded preceding and 1 preceding)
)
select position, append_id, originator_id, originator_version, topic, state, mac
from measured
where coalesce(bytes_before, 0) < $4
order by position

-- name: parked_list
-- The parked events of all subscribers. Nothing is read of an error that is longer than ours.
select
    p.read_model, p.position, p.stream_id, e.topic,
    case when octet_length(p.error) > 4096 then '' else p.error end as error, p.parked_at
from ledger.parked as p
cross join lateral (
    select i.append_id from ledger.log as i where i.position = p.position offset 0
) as l
cross join lateral (
    select i.topic from ledger.events as i where i.append_id = l.append_id offset 0
) as e
order by p.read_model, p.position

-- name: parked_queue
-- The parked streams of a subscriber, that of the oldest event first; or that of a position.
select stream_id from ledger.parked
where read_model = $1 and (
    $2::bigint is null
    or stream_id = (select stream_id from ledger.parked where read_model = $1 and position = $2)
)
group by stream_id
order by min(position)

-- name: parked_streams
-- Which of these streams have parked events?
select distinct stream_id from ledger.parked where read_model = $1 and stream_id = any($2::uuid[])

-- name: retry_hold
-- Keeps rebuilds of the ledger out until the transaction ends; false while there is one.
select pg_try_advisory_xact_lock_shared(hashtext('claim-ledger rebuild'), hashtext($1)) as is_free

-- name: status_subscriptions
-- Where each subscriber is, the state of the first event it has not handled (its time is in there),
-- how many streams it has parked, and whether the log lacks the event that it came to.
select
    s.name,
    s.position,
    (
        select e.state from ledger.log as l
        cross join lateral (
            select i.state from ledger.events as i where i.append_id = l.append_id offset 0
        ) as e
        where l.position > s.position
        order by l.position
        limit 1
    ) as next,
    (select count(distinct stream_id) from ledger.parked where read_model = s.name) as parked,
    s.position > 0 and not exists(
        select from ledger.log as l
        where l.position = s.position and l.leaf_hash = coalesce(s.leaf_hash, l.leaf_hash)
    ) as is_lost
from ledger.subscriptions as s
order by s.name

-- name: status_read_only
-- Whether a connection may write nothing.
select current_setting('transaction_read_only')::bool as is_read_only

-- name: status_standby
-- Whether the server is a standby. A superuser can replace any function, and set this nowhere.
show in_hot_standby

-- name: status_set_aside
-- How many events were refused a number so far, by the number that the last one was given; and how
-- many within the last day, of which a thousand are counted, without those that were taken back: they
-- stand in `events` again, as they were.
select
    coalesce((select max(id) from ledger.set_aside), 0) as ever,
    (
        select count(*) from (
            select from ledger.set_aside as s
            where
                s.set_aside_at > clock_timestamp() - interval '1 day'
                and not exists(
                    select from ledger.events as e
                    where
                        e.originator_id = s.originator_id
                        and e.originator_version = s.originator_version
                        and e.topic = s.topic and e.state = s.state and e.mac = s.mac
                    offset 0
                )
            limit 1000
        ) as recent
    ) as lately

-- name: status_versions
-- Which version of its code made the rows of each read model that was ever rebuilt.
select name, version, previous_version, rebuilt_at
from ledger.read_models

-- name: subscription_behind
-- Has the log grown past this subscriber, or been cut? Takes no lock and draws no transaction id.
select 1 from ledger.head as h
where h.size <> coalesce((select position from ledger.subscriptions where name = $1), -1)

-- name: subscription_events
-- The events of the topics asked for at the next positions after one, in the log's order: the
-- checkpoint passes over the others unread. $4, if not null, are all topics that we know: those that
-- we do not are then among the events too. Until they have $5 bytes. Where another event is at the
-- last position, it stands there alone.
with batch as (
    select position, append_id
    from (
        select position, append_id from ledger.log where position > $1 order by position limit 500
    ) as bounded
    order by position
    limit $2
), measured as (
    select
        b.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state, e.mac,
        sum(octet_length(e.state)) over w as bytes_before
    from batch as b
    left join lateral (
        select i.append_id, i.originator_id, i.originator_version, i.topic, i.state, i.mac
        from ledger.events as i
        where
            i.append_id = b.append_id
            and (i.topic = any($3::text[]) or i.topic <> all($4::text[]))
        offset 0
    ) as e on true
    window w as (order by b.position rows between unbounded preceding and 1 preceding)
)
select position, append_id, originator_id, originator_version, topic, state, mac
from measured
where
    coalesce(bytes_before, 0) < $5
    and (topic is not null or position = (select max(position) from batch))
order by position

-- name: subscription_hold
-- The checkpoint, held until the end of the transaction; no row while another process holds it.
-- `is_lost`: the log does not have the event that the checkpoint came to. What follows in the
-- transaction has its plan from the cache, unless the session was told otherwise.
select
    s.position,
    s.position > 0 and not exists(
        select from ledger.log as l
        where l.position = s.position and l.leaf_hash = coalesce(s.leaf_hash, l.leaf_hash)
    ) as is_lost,
    set_config(
        'plan_cache_mode',
        replace(current_setting('plan_cache_mode'), 'auto', 'force_generic_plan'),
        true
    )
from ledger.subscriptions as s
where s.name = $1
for update of s skip locked

-- name: subscription_move
-- Moves the checkpoint, in the transaction of the subscriber's writes, and notes the event there.
update ledger.subscriptions
set position = $2, leaf_hash = (select leaf_hash from ledger.log where position = $2)
where name = $1

-- name: subscription_register
-- Registers a new subscriber at the log's beginning; returns a row if it was new.
insert into ledger.subscriptions (name, position) values ($1, 0)
on conflict do nothing
returning position

-- name: subscription_wait
-- The checkpoint, held until the end of the transaction; waits for whoever holds it.
select position from ledger.subscriptions where name = $1 for update

-- name: unpark
-- Removes events that have been handled, or are about to be parked again.
delete from ledger.parked where read_model = $1 and position = any($2::bigint[])
