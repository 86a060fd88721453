-- name: checkpoint
-- How far a catch-up read model has come; no further than the log, which may have been cut.
select least(s.position, h.size) as position
from ledger.subscriptions as s, ledger.head as h
where s.name = $1 and h.id = 1

-- name: checkpoint_hold
-- Holds a checkpoint: no worker projects for it until the transaction ends. Where it is has to be read
-- by the next statement: one that waits for a row still sees the log's head as of before the wait.
select 1 as held from ledger.subscriptions where name = $1 for update

-- name: head
-- The log's size, which is its last position.
select size from ledger.head where id = 1

-- name: is_numbered
-- Does every event up to this one have a position?
select not exists(select from ledger.pending where append_id <= $1)

-- name: kept
-- What is known of a read model's rows; no row: never rebuilt.
select version, previous_version, previous_position, rebuilt_at, previous_rebuilt_at
from ledger.read_models
where name = $1

-- name: kept_mark
-- The kept rows of a read model have been brought up to a position.
update ledger.read_models set previous_position = $2 where name = $1

-- name: lock
-- The lock of rebuilds, alone: waits for the processes of parts that share it.
select pg_advisory_lock(hashtext('claim-ledger rebuild'), hashtext($1))

-- name: lock_shared
-- The lock of rebuilds, shared.
select pg_advisory_lock_shared(hashtext('claim-ledger rebuild'), hashtext($1))

-- name: log_bytes
-- How large the events between two positions are, of the topics asked for.
select coalesce(sum(octet_length(e.state)), 0) as bytes
from ledger.log as l
join ledger.events as e using (append_id)
where l.position > $1 and l.position <= $2 and e.topic = any($3::text[])

-- name: newest_unnumbered
-- The last committed event that has no position yet; null: all have one.
select max(append_id) from ledger.pending

-- name: note
-- The rows that are live now, and those that are kept, brought up to a position.
insert into ledger.read_models (
    name, version, rebuilt_at, previous_version, previous_rebuilt_at, previous_position
)
values ($1, $2, $3, $4, $5, $6)
on conflict (name) do update
set
    version = excluded.version,
    rebuilt_at = excluded.rebuilt_at,
    previous_version = excluded.previous_version,
    previous_rebuilt_at = excluded.previous_rebuilt_at,
    previous_position = excluded.previous_position

-- name: page
-- Events between two positions, in the log's order, of the topics asked for: until they have $4 bytes. A
-- page at a time: a cursor over the whole log would hold a snapshot, under which `pending` bloats. One
-- scan of the index finds all events of the range, which is half of what a look-up of each costs; each
-- finds its position by its place among the sorted ids, without a look-up and without a join, of which
-- a rebuild's session has only nested loops.
with placed as materialized (
    select
        array_agg(append_id order by append_id) as ids,
        array_agg(position order by append_id) as positions
    from ledger.log
    where position > $1 and position <= $2
), found as (
    select
        (select positions from placed)[
            width_bucket(e.append_id, (select ids from placed))
        ] as position,
        e.append_id, e.originator_id, e.originator_version, e.topic, e.state,
        case when octet_length(e.mac) > 64 then ''::bytea else e.mac end as mac
    from ledger.events as e
    where
        e.append_id = any((select ids from placed)::bigint[])
        and e.topic = any($3::text[])
), measured as (
    select
        position, append_id, originator_id, originator_version, topic, state, mac,
        sum(octet_length(state)) over w as bytes_before
    from found
    window w as (order by position rows between unbounded preceding and 1 preceding)
)

select position, append_id, originator_id, originator_version, topic, state, mac
from measured
where coalesce(bytes_before, 0) < $4
order by position

-- name: parked
-- The parked positions of a catch-up read model; its live rows lack them.
select position from ledger.parked where read_model = $1

-- name: parked_beyond
-- Removes what was parked beyond a position: a log that was cut no longer has it.
delete from ledger.parked where read_model = $1 and position > $2

-- name: parked_count
-- How many streams and events of a read model are parked.
select count(distinct stream_id) as streams, count(*) as events
from ledger.parked
where read_model = $1

-- name: replica_message
-- Something to commit, which changes no row: the commit waits for the synchronous replica.
select pg_logical_emit_message(true, 'claim-ledger', 'before a swap')

-- name: schema_tables
-- The tables of a schema, as a statement names them.
select oid::regclass::text as name
from pg_class
where relnamespace = to_regnamespace($1) and relkind = 'r'

-- name: schema_users
-- Who may use a schema, besides its owner.
select case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end as grantee
from pg_namespace as n, aclexplode(n.nspacl) as a
where n.nspname = $1 and a.privilege_type = 'USAGE' and a.grantee <> n.nspowner

-- name: table_columns
-- The columns of a table that ANALYZE has options for, which LIKE does not copy. PostgreSQL keeps marks of
-- its own beside them (`pg_attver`, from 15.20 and 17.12 on), which are one table's alone.
select quote_ident(a.attname) as name, string_agg(o.option, ', ') as options
from pg_attribute as a
cross join lateral unnest(a.attoptions) as o (option)
where a.attrelid = to_regclass($1) and not a.attisdropped and starts_with(o.option, 'n_distinct')
group by a.attnum, a.attname
order by a.attnum

-- name: table_facts
-- Whose a table is, and its storage options, which LIKE does not copy; no row: no such table.
select pg_get_userbyid(relowner) as owner, array_to_string(reloptions, ', ') as options
from pg_class
where oid = to_regclass($1)

-- name: table_indexes
-- A table's indexes as they would be made: the primary key first, and then those that take longest;
-- `constraint_def` is that of the constraint that an index serves, if it serves one.
select
    quote_ident(i.relname) as name,
    x.indisprimary as is_primary,
    pg_get_indexdef(i.oid) as index_def,
    pg_get_constraintdef(k.oid) as constraint_def
from pg_index as x
join pg_class as i on i.oid = x.indexrelid
left join pg_constraint as k on k.conindid = i.oid and k.contype in ('p', 'u', 'x')
where x.indrelid = to_regclass($1)
order by not x.indisprimary, x.indnkeyatts desc, i.relname

-- name: table_key
-- The columns of a table's primary key, in order.
select a.attname as name
from pg_index as x
cross join unnest(x.indkey::int[]) with ordinality as k (attnum, nr)
join pg_attribute as a on a.attrelid = x.indrelid and a.attnum = k.attnum
where x.indrelid = to_regclass($1) and x.indisprimary
order by k.nr

-- name: table_rights
-- Who may do what with a table, besides its owner.
select
    a.privilege_type,
    a.is_grantable,
    case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end as grantee
from pg_class as c, aclexplode(c.relacl) as a
where c.oid = to_regclass($1) and a.grantee <> c.relowner

-- name: table_shape
-- What statements rely on in tables of a schema: columns in any order, constraints and indexes
-- (a conflict is named after them, and a query is slow without them), triggers, rights. Foreign keys
-- are left out, as LIKE does not copy them. Names of the schema are left out of each.
with tables as (
    select c.oid, c.relname, c.relacl, c.relowner
    from pg_class as c
    where c.relnamespace = to_regnamespace($1) and c.relname = any($2::text[])
)

select
    t.relname as table,
    concat_ws(
        ' ', 'column', quote_ident(a.attname), format_type(a.atttypid, a.atttypmod),
        case when a.attnotnull then 'not null' end,
        case when a.attidentity <> '' then concat('identity ', a.attidentity) end,
        case when a.attgenerated <> '' then concat('generated ', a.attgenerated) end,
        case when a.attcollation <> y.typcollation then 'collate ' || a.attcollation::regcollation end,
        'default ' || pg_get_expr(d.adbin, d.adrelid)
    ) as part
from tables as t
join pg_attribute as a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
join pg_type as y on y.oid = a.atttypid
left join pg_attrdef as d on d.adrelid = t.oid and d.adnum = a.attnum
union all
select t.relname, concat_ws(' ', 'constraint', quote_ident(k.conname), pg_get_constraintdef(k.oid))
from tables as t
join pg_constraint as k on k.conrelid = t.oid and k.contype in ('c', 'p', 'u', 'x')
union all
select
    t.relname,
    regexp_replace(pg_get_indexdef(x.indexrelid), ' ON (ONLY )?\S+ USING ', ' USING ')
    || case when x.indisvalid then '' else ' invalid' end
from tables as t
join pg_index as x on x.indrelid = t.oid
union all
select t.relname, regexp_replace(pg_get_triggerdef(g.oid), ' ON \S+ ', ' ')
from tables as t
join pg_trigger as g on g.tgrelid = t.oid and not g.tgisinternal
union all
select
    t.relname,
    concat_ws(
        ' ', a.privilege_type, 'to',
        case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
    )
from tables as t, aclexplode(t.relacl) as a
where a.grantee <> t.relowner

-- name: try_lock
-- One rebuild a ledger at a time. Held by the session: it ends with it, however it ends.
select pg_try_advisory_lock(hashtext('claim-ledger rebuild'), hashtext($1))

-- name: try_lock_briefly
-- The lock of rebuilds, until the end of the transaction: held if nobody works on the ledger.
select pg_try_advisory_xact_lock(hashtext('claim-ledger rebuild'), hashtext($1))

-- name: try_lock_shared
-- The same for a process of a rebuild's: refused where another rebuild has begun since.
select pg_try_advisory_lock_shared(hashtext('claim-ledger rebuild'), hashtext($1))

-- name: unlock
-- Lets the next rebuild of this ledger begin.
select pg_advisory_unlock(hashtext('claim-ledger rebuild'), hashtext($1))

-- name: unlock_shared
-- Shares the lock no more.
select pg_advisory_unlock_shared(hashtext('claim-ledger rebuild'), hashtext($1))

-- name: unnumbered
-- Committed events after one that have no position yet, in the order in which they will get one,
-- until they have $3 bytes.
with measured as (
    select
        e.append_id, e.originator_id, e.originator_version, e.topic, e.state, e.mac,
        sum(octet_length(e.state)) over w as bytes_before
    from ledger.pending as p
    join ledger.events as e using (append_id)
    where e.append_id > $1 and e.topic = any($2::text[])
    window w as (order by e.append_id rows between unbounded preceding and 1 preceding)
)
select 0::bigint as position, append_id, originator_id, originator_version, topic, state, mac
from measured
where coalesce(bytes_before, 0) < $3
order by append_id
