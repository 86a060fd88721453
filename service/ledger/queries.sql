-- name: appended
-- The id of the last event, about how many there are: ids are drawn in order, with gaps where a command
-- failed.
select coalesce(max(append_id), 0) as last from ledger.events

-- name: any_event
-- A row where there are events.
select true as found from ledger.events limit 1

-- name: at
-- Of a stream ($1), the event of a version ($2), if it is of one of these topics ($3).
select e.originator_id, e.append_id, e.originator_version, e.topic, e.state, e.mac
from ledger.events as e
where e.originator_id = $1 and e.originator_version = $2 and e.topic = any($3)

-- name: bound
-- The numbered events that say, with a MAC, that every later one has a MAC of that key or a later one. None
-- that the service writes comes near 4 KiB.
select l.position, e.originator_version, e.topic, e.state, e.mac
from ledger.events as e
cross join lateral (
    select i.position from ledger.log as i where i.append_id = e.append_id offset 0
) as l
where
    e.originator_id = $1 and e.topic = $2 and octet_length(e.mac) <= 64
    and octet_length(e.state) <= 4096
order by e.originator_version
limit 1000

-- name: connection_limit
-- The session's login, how many connections it may have (-1: any number), and how many there are for
-- all who are no superusers.
select
    rolname::text as login,
    case when rolsuper then -1 else rolconnlimit end as most,
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
    - coalesce(current_setting('reserved_connections', true)::int, 0) as places
from pg_roles
where rolname = session_user

-- name: data_keys
-- The data keys that still exist among those asked for. One that came back after its subject was erased
-- is not among them: what was erased is opened for nobody.
select
    k.key_id,
    case when octet_length(k.wrapped) > 255 then ''::bytea else k.wrapped end as wrapped,
    case when octet_length(k.master_key_id) > 64 then '' else k.master_key_id end as master_key_id
from ledger.data_keys as k
where
    k.key_id = any($1::uuid[])
    and not exists(
        select from ledger.events as e
        where e.originator_id = k.key_id and e.topic = 'PersonalDataErased'
        offset 0
    )

-- name: data_keys_stored
-- The data keys that are stored among those asked for, also those that came back after an erasure.
select
    key_id,
    case when octet_length(wrapped) > 255 then ''::bytea else wrapped end as wrapped,
    case when octet_length(master_key_id) > 64 then '' else master_key_id end as master_key_id
from ledger.data_keys
where key_id = any($1::uuid[])

-- name: event_keys
-- The keys that bind events to this service, wrapped, and whether each may sign by now. Of what is longer
-- than a wrapped key, nothing is read: it does not open.
select
    key_id, since_start,
    case when octet_length(wrapped) > 255 then ''::bytea else wrapped end as wrapped,
    case when octet_length(master_key_id) > 64 then '' else master_key_id end as master_key_id,
    signs_from, signs_from <= clock_timestamp() as may_sign
from ledger.event_keys

-- name: event_keys_insert
-- The next key that binds events. It signs later, when every process knows it.
insert into ledger.event_keys (key_id, since_start, wrapped, master_key_id, signs_from)
values ($1, $2, $3, $4, clock_timestamp() + $5)
on conflict do nothing
returning signs_from

-- name: exists
-- Does this stream exist?
select exists(
    select from ledger.events where originator_id = $1 and originator_version = 1
) as begun

-- name: is_at_work
-- Does a backend of this process id work? One that is idle has answered, and its answer was lost.
-- Behind a pooler ($2) its ids are others; then it is the login's own sessions that tell whether one
-- waits for a replica, which is what takes as long as that.
select exists(
    select from pg_stat_activity
    where (pid = $1 and coalesce(state not like 'idle%', true))
        or ($2 and wait_event = 'SyncRep')
) as is_at_work

-- name: last
-- Of a stream ($1), the last event of some topics ($2) before a version ($3).
select e.originator_id, e.append_id, e.originator_version, e.topic, e.state, e.mac
from ledger.events as e
where e.originator_id = $1 and e.topic = any($2) and e.originator_version < $3
order by e.originator_version desc
limit 1

-- name: leaf_hashes
-- The leaf hashes of a range of the log, in its order.
select leaf_hash from ledger.log where position > $1 and position <= $2 order by position

-- name: lock
-- Exclusive advisory locks, in one order so that two transactions cannot wait for each other.
select pg_advisory_xact_lock(key) from (select unnest($1::bigint[]) as key order by 1) as keys

-- name: lock_shared
-- Shared advisory locks, in the same order as the exclusive ones.
select pg_advisory_xact_lock_shared(key) from (select unnest($1::bigint[]) as key order by 1) as keys

-- name: lock_shared_try
-- Shared advisory locks, without waiting: those that nobody has, or waits for, alone.
select key from unnest($1::bigint[]) as key where pg_try_advisory_xact_lock_shared(key)

-- name: login_excess
-- The session's login, and what it may do beyond the work of one ledger, its schema: in words, and
-- nothing where all is well. A member of a role counts as who can become it, also one who can only
-- make itself one; what a superuser is need not be told apart. Another ledger is a schema with events.
-- And whether what reaches the server is not encrypted, although that is not on a loopback or a socket: the
-- last part of the way, whatever proxies or poolers there are.
select
    l.rolname::text as login,
    array_remove(array[
        case when l.rolsuper then 'is a superuser' end,
        case when l.rolcreaterole then 'may create roles' end,
        case when l.rolcreatedb then 'may create databases' end,
        case when l.rolreplication then 'may replicate' end,
        case when l.rolbypassrls then 'passes by row security' end,
        case when exists(
            select from pg_namespace as n left join pg_class as c on c.relnamespace = n.oid
            where n.nspname = $1::text and (
                pg_has_role(l.oid, n.nspowner, 'member') or pg_has_role(l.oid, c.relowner, 'member')
            )
        ) then 'owns the tables' end,
        (
            select 'may become ' || string_agg(o.rolname, ', ' order by o.rolname)
            from pg_roles as o
            where not l.rolsuper and o.oid <> l.oid and o.rolname <> 'claim_ledger_' || $1::text
            and pg_has_role(l.oid, o.oid, 'member')
        ),
        (
            select 'may use the schema ' || string_agg(n.nspname, ', ' order by n.nspname)
            from pg_namespace as n inner join pg_class as c on c.relnamespace = n.oid
            where not l.rolsuper and c.relname = 'events' and n.nspname <> $1::text
            and has_schema_privilege(l.oid, n.oid, 'usage')
        )
    ], null) as excess,
    exists(select from pg_extension where extname = 'citus') as is_citus,
    exists(
        select from pg_namespace as n inner join pg_class as c on c.relnamespace = n.oid
        where n.nspname = $1::text and c.relname = 'events'
    ) as is_migrated,
    coalesce(
        not (inet_server_addr() <<= '127.0.0.0/8' or inet_server_addr() = '::1')
        and not (select s.ssl from pg_stat_ssl as s where s.pid = pg_backend_pid()),
        false
    ) as is_in_the_clear
from pg_roles as l
where l.rolname = session_user

-- name: now
-- The database's clock: links expire by it, whichever machine asks.
select clock_timestamp() as now

-- name: of_topics
-- Events of some topics ($1), appended after one and up to another, whose state has $5 somewhere (any
-- has what is empty), until they have $4 bytes.
with measured as (
    select
        append_id, originator_id, originator_version, topic, state, mac,
        sum(octet_length(state)) over w as bytes_before
    from ledger.events
    where
        append_id > $2 and append_id <= $3 and topic = any($1::text[])
        and position($5::bytea in state) > 0
    window w as (order by append_id rows between unbounded preceding and 1 preceding)
)
select 0::bigint as position, append_id, originator_id, originator_version, topic, state, mac
from measured
where coalesce(bytes_before, 0) < $4
order by append_id

-- name: part
-- Of some streams ($1), events of some topics ($2) among the first $3 of each, unless they have more
-- than $4 bytes: oldest first, $5 at the most.
select e.originator_id, e.append_id, e.originator_version, e.topic, e.state, e.mac
from ledger.events as e
where
    e.originator_id = any($1) and e.topic = any($2)
    and e.originator_version <= $3 and octet_length(e.state) <= $4
order by e.originator_id, e.originator_version
limit $5

-- name: positions
-- The positions of those of some events that have one.
select append_id, position from ledger.log where append_id = any($1::bigint[])

-- name: sequencer_advance
-- The log has grown. Listeners, such as a stock recorder's subscription, are notified once a batch.
-- The function is outside `returning`, where Citus takes none that does something. A log with a tree needs
-- no part of one: what somebody else has put there is gone with it, and keeps nothing from being numbered.
with grown as (
    update ledger.head set size = $1, tree = $2, part_size = 0, part = '' where id = 1 returning id
)
select pg_notify('stored_events', '') from grown

-- name: sequencer_behind
-- Does anything wait for its number up to an append_id?
select exists(select from ledger.pending where append_id <= $1)

-- name: sequencer_grow
-- A part of the tree of a log that is older than trees; it is the tree once it has every event.
update ledger.head set
    part_size = $1,
    part = $2::bytea,
    tree = case when size = $1 then $2::bytea end
where id = 1

-- name: sequencer_hold
-- Whoever holds this row numbers events; nobody waits for it. What follows in the transaction has its
-- plan from the cache (planning how to number takes as long as numbering twenty events), unless the
-- session was told otherwise. Of a longer tree than there is, a byte is read, which is none.
select
    size, case when octet_length(tree) > 2048 then '\x00'::bytea else tree end as tree,
    part_size, case when octet_length(part) > 2048 then '\x00'::bytea else part end as part,
    set_config(
        'plan_cache_mode',
        replace(current_setting('plan_cache_mode'), 'auto', 'force_generic_plan'),
        true
    )
from ledger.head where id = 1 for update skip locked

-- name: sequencer_lag
-- How many committed events wait for their number, and the oldest's state (its time is in there). Of those
-- appended before the event that stands $1 positions before the log's end none is counted, as below it
-- there are only dead rows, or what committed so late that the sequencer numbers it at any moment.
select
    (select count(*) from ledger.pending where append_id > f.append_id) as waiting,
    (
        select e.state from ledger.pending as p
        cross join lateral (
            select i.state from ledger.events as i where i.append_id = p.append_id offset 0
        ) as e
        where p.append_id > f.append_id
        order by p.append_id limit 1
    ) as oldest,
    (select size from ledger.head where id = 1) as size
from (
    select coalesce(
        (
            select l.append_id from ledger.log as l
            where l.position = (select h.size - $1::bigint from ledger.head as h where h.id = 1)
        ),
        -9223372036854775807
    ) as append_id
    offset 0
) as f

-- name: sequencer_number
-- Numbers the oldest committed events, at most $2, until they have $3 bytes: a rollback takes the
-- numbers back, so there are no gaps. Beside each hash is what its MAC is of, and the MAC, and whether
-- the event before it in its stream has a number: where one does not hold, the caller takes all of it
-- back. What is queued and no event has no hash. The first limit is the planner's: it takes a
-- parameter for a tenth of the table. Nothing is joined: the queue is empty most of the time, and a
-- plan that was made then would compare each queued row with each event, however many there are later.
-- Nothing is numbered up to an append_id ($6) below which the caller knows that nothing waits.
with oldest as (
    select append_id
    from (
        select append_id from ledger.pending where append_id > $6 order by append_id limit 2000
    ) as bounded
    order by append_id
    limit $2
), measured as (
    select
        o.append_id,
        e.append_id as event, e.originator_id, e.originator_version, e.topic, e.state, e.mac,
        sum(octet_length(e.state)) over w as bytes_before
    from oldest as o
    left join lateral (
        select l.append_id, l.originator_id, l.originator_version, l.topic, l.state, l.mac
        from ledger.events as l where l.append_id = o.append_id offset 0
    ) as e on true
    window w as (order by o.append_id rows between unbounded preceding and 1 preceding)
), placed as (
    select
        append_id, event, originator_id, originator_version, topic, state, mac,
        $1 + count(event) over (order by append_id rows unbounded preceding) as position
    from measured
    where coalesce(bytes_before, 0) < $3
), taken as materialized (
    select
        append_id, event, position, originator_id, originator_version, topic, state, mac,
        case when event is not null then ledger.leaf_hash(
            position, event, originator_id, originator_version, topic, state
        ) end as leaf_hash
    from placed
), unqueued as (
    delete from ledger.pending where append_id = any(array(select append_id from taken))
), numbered as (
    insert into ledger.log (position, append_id, leaf_hash)
    select position, append_id, leaf_hash from taken where event is not null
)
select
    t.append_id,
    t.leaf_hash,
    t.originator_id = $4 and t.topic = $5 as is_boundary,
    ledger.event_digest(t.originator_id, t.originator_version, t.topic, t.state) as digest,
    case when octet_length(t.mac) > 64 then ''::bytea else t.mac end as mac,
    t.originator_version - 1 = coalesce(
        lag(t.originator_version) over (partition by t.originator_id order by t.append_id),
        case when t.originator_version > 1 then (
            select e.originator_version
            from ledger.events as e
            where
                e.originator_id = t.originator_id
                and e.originator_version = t.originator_version - 1
                and e.append_id + 0 < t.append_id
                and exists(select from ledger.log as l where l.append_id = e.append_id offset 0)
        ) end,
        0
    ) as is_next
from taken as t
order by t.append_id

-- name: sequencer_set_aside
-- Sets aside what must not be numbered: the event, the queue's row, and what follows in its stream.
select ledger.set_aside_events($1)

-- name: sequencer_probe
-- The oldest event beyond an append_id ($1) that waits for its number; the last that got one; and which
-- transactions had ended, and begun. Takes no lock and draws no transaction id. A snapshot knows of none
-- that began after the last that has ended: `age` does, which counts 32 bits up to the next one.
select
    (select min(append_id) from ledger.pending where append_id > $1) as oldest,
    coalesce(
        (
            select l.append_id from ledger.log as l
            where l.position = (select h.size from ledger.head as h where h.id = 1)
        ),
        0
    ) as last,
    pg_snapshot_xmin(pg_current_snapshot())::text::bigint as xmin,
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint + (
        (age('3'::xid)::bigint + 3 - pg_snapshot_xmax(pg_current_snapshot())::text::bigint) & 4294967295
    ) as next

-- name: sequencer_unqueue
-- Takes out of the queue what has a number already: it would keep every other event from getting one.
delete from ledger.pending as p
where exists(select from ledger.log as l where l.append_id = p.append_id offset 0)
returning p.append_id

-- name: service_keys
-- The service's own secrets, wrapped. Whoever adds others by a login stops nothing by that.
select
    name,
    case when octet_length(wrapped) > 255 then ''::bytea else wrapped end as wrapped,
    case when octet_length(master_key_id) > 64 then '' else master_key_id end as master_key_id
from ledger.service_keys
where name = any($1::text[])

-- name: service_keys_insert
-- The first to come to an installation with neither keys nor events draws its secrets, and with them the
-- event key ($4); everyone after reads them. What is gone is never drawn again: with it went what only it
-- can recognise.
with drawn as (
    insert into ledger.service_keys (name, wrapped, master_key_id)
    select name, wrapped, $3 from unnest($1::text[], $2::bytea[]) as one (name, wrapped)
    where
        not exists(select from ledger.service_keys as k where k.name = any($1::text[]))
        and not exists(select from ledger.event_keys)
        and not exists(select from ledger.events)
    on conflict do nothing
    returning name
)
insert into ledger.event_keys (key_id, since_start, wrapped, master_key_id)
select 1, true, $4, $3
where (select count(*) from drawn) = cardinality($1::text[])
on conflict do nothing

-- name: set_aside
-- Events after one ($1) that were set aside with a MAC, at most $2, and what the MAC is of: those whose
-- state has $3 somewhere (any has what is empty), of one stream ($4) or all.
select
    s.id, s.append_id, s.originator_id, s.originator_version, s.topic,
    ledger.event_digest(s.originator_id, s.originator_version, s.topic, s.state) as digest, s.mac
from ledger.set_aside as s
where
    s.id > $1 and position($3::bytea in s.state) > 0 and octet_length(s.mac) <= 64
    and s.originator_id = coalesce($4::uuid, s.originator_id)
order by s.id
limit $2

-- name: set_aside_state
-- What was set aside under an id, as it is stored.
select state from ledger.set_aside where id = $1

-- name: stream
-- One stream, oldest first, with the data key of its subject where the events need it.
select e.append_id, e.originator_version, e.topic, e.state, e.mac
from ledger.events as e
where e.originator_id = $1
order by e.originator_version

-- name: stream_on
-- One stream from a version ($2) on, oldest first: events of these topics ($3; null: of all), at most $4.
select e.append_id, e.originator_version, e.topic, e.state, e.mac
from ledger.events as e
where
    e.originator_id = $1 and e.originator_version >= $2
    and ($3::text[] is null or e.topic = any($3::text[]))
order by e.originator_version
limit $4

-- name: told
-- Of each of some streams ($1), the first hundred events of a topic ($2) with at most $3 bytes: genuine
-- ones are few, and others must not fill the memory.
select
    0::bigint as position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state, e.mac
from unnest($1::uuid[]) as asked (stream_id)
cross join lateral (
    select append_id, originator_id, originator_version, topic, state, mac
    from ledger.events
    where originator_id = asked.stream_id and topic = $2 and octet_length(state) <= $3
    order by originator_version limit 100
) as e

-- name: write
-- What commands write: events and the queue of the unnumbered, public ids, data keys. The rows of the
-- read models are added in the same statement (service/ledger/writing.py).
select outcomes, append_ids
from ledger.write(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20
)
