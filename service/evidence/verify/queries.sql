-- name: checkpoints
-- What was signed, as the database keeps it.
select origin, size, note, tree from ledger.checkpoints order by size, origin

-- name: functions
-- The text of functions of the ledger's schema, those of one name together.
select p.proname, p.prosrc
from pg_proc as p
join pg_namespace as n on n.oid = p.pronamespace
where n.nspname = $1 and p.proname = any($2::text[])
order by p.proname, p.oid

-- name: hashes
-- What the ledger's own functions make of an event.
select
    ledger.leaf_hash($1::bigint, $2::bigint, $3::uuid, $4::bigint, $5::text, $6::bytea) as leaf,
    ledger.event_digest($3::uuid, $4::bigint, $5::text, $6::bytea) as digest

-- name: head
-- What the sequencer goes on from; one row, unless somebody made it otherwise. And how many rows of
-- the log have no position at all, which reading it in order does not meet.
select
    h.id,
    h.size,
    h.tree,
    (select count(*) from ledger.log as l where l.position is null) as unplaced
from ledger.head as h

-- name: people
-- The events of the ledger of accounts that say who could act, numbered or about to be.
select e.topic, e.state
from ledger.events as e
where
    e.topic = any($1::text[])
    and (
        exists(select from ledger.log as l where l.append_id = e.append_id)
        or exists(select from ledger.pending as p where p.append_id = e.append_id)
    )
order by e.append_id

-- name: plan
-- Reading the log in its order: by its index, row by row. Sorting it whole would take its size again
-- on disk before the first row came. For this transaction; 'on' lets the planner choose again.
select
    set_config('enable_sort', $1, true),
    set_config('enable_hashjoin', $1, true),
    set_config('enable_mergejoin', $1, true)

-- name: revision
-- The revision of the schema.
select version_num from public.alembic_version

-- name: revision_readable
-- May this login read it?
select coalesce(
    has_table_privilege(to_regclass('public.alembic_version'), 'select'), false
) as readable

-- name: rows
-- The log in its order from a position on, each row beside the event that it numbers; nulls where
-- that is gone.
select
    l.position,
    l.append_id,
    l.leaf_hash,
    e.append_id as event,
    e.originator_id,
    e.originator_version,
    e.topic,
    e.state,
    e.mac
from ledger.log as l
left join ledger.events as e on e.append_id = l.append_id
where l.position >= $1
order by l.position

-- name: sizes
-- The stored bytes of each of those rows, in the same order; nothing of them is read.
select coalesce(octet_length(e.state), 0) as size
from ledger.log as l
left join ledger.events as e on e.append_id = l.append_id
where l.position >= $1
order by l.position

-- name: size
-- About how many events there are to read.
select size from ledger.head

-- name: slices_head
-- How far the log is numbered, and its sequencer's tree.
select size, tree from ledger.head where id = 1

-- name: slices_hold
-- Where the pass through the log is; nobody waits for whoever is at it.
select position, tree, began_at, finished_at, size, fault_position, fault, mac
from ledger.log_verification
where id = 1
for update skip locked

-- name: slices_note
-- Keeps where the pass is.
update ledger.log_verification set
    position = $1, tree = $2, began_at = $3, finished_at = $4, size = $5,
    fault_position = $6, fault = $7, mac = $8
where id = 1

-- name: slices_rows
-- A range of the log until its events have $3 bytes, each row beside the event that it numbers; nulls
-- where that is gone.
with measured as (
    select
        l.position, l.append_id, l.leaf_hash,
        e.append_id as event, e.originator_id, e.originator_version, e.topic, e.state,
        case when octet_length(e.mac) > 64 then ''::bytea else e.mac end as mac,
        sum(octet_length(e.state)) over w as bytes_before
    from ledger.log as l
    left join ledger.events as e using (append_id)
    where l.position > $1 and l.position <= $2
    window w as (order by l.position rows between unbounded preceding and 1 preceding)
)
select
    position, append_id, leaf_hash, event, originator_id, originator_version, topic, state, mac
from measured
where coalesce(bytes_before, 0) < $3
order by position

-- name: slices_signed
-- The stored checkpoints of a range of sizes, or of all beyond one.
select size, origin, note
from ledger.checkpoints
where size > $1 and ($2::bigint is null or size <= $2)
order by size

-- name: strays
-- The first event that neither has a number nor waits for one, and where it stands by the order of
-- appending: before the first position with a greater append_id, or null: behind all of them.
select
    e.append_id,
    (select min(l.position) from ledger.log as l where l.append_id > e.append_id) as position
from ledger.events as e
where
    not exists (select from ledger.log as l where l.append_id = e.append_id)
    and not exists (select from ledger.pending as p where p.append_id = e.append_id)
order by e.append_id nulls first
limit 1

-- name: triggers
-- The triggers of the ledger's tables that are on, and the functions that they call.
select c.relname, t.tgname, p.proname
from pg_trigger as t
join pg_class as c on c.oid = t.tgrelid
join pg_namespace as n on n.oid = c.relnamespace
join pg_proc as p on p.oid = t.tgfoid and p.pronamespace = n.oid
where
    n.nspname = $1 and c.relname = any($2::text[]) and not t.tgisinternal
    and t.tgenabled in ('O', 'A')

-- name: waiting
-- What waits for its number: the event, and the position of what has one already.
select p.append_id, e.append_id as event, e.originator_id, e.originator_version, l.position
from ledger.pending as p
left join ledger.events as e on e.append_id = p.append_id
left join ledger.log as l on l.append_id = p.append_id
order by p.append_id
