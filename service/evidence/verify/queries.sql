-- name: checkpoints
-- What was signed, as the database keeps it. Of what is longer than ours, nothing is read: no checkpoint has
-- an origin of 2 KiB, a note of 4, or a tree of more than 64 hashes.
select
    case when octet_length(origin) > 2048 then '' else origin end as origin, size,
    case when octet_length(note) > 4096 then '' else note end as note,
    case when octet_length(tree) > 2048 then '\x00'::bytea else tree end as tree
from ledger.checkpoints as c
order by c.size, c.origin

-- name: definitions
-- Everything in a schema that decides what its rows say: relations, columns, constraints, indexes that
-- keep rows apart or run something, triggers, rules, policies, sequences, functions, types, operators.
-- Not who may use it, how it is stored, and other indexes, which decide how fast it is. Nothing that an
-- extension has made.
with relations as (
    select c.oid, c.relname, c.relkind, c.relpersistence, c.relrowsecurity, c.relforcerowsecurity
    from pg_class as c
    where
        c.relnamespace = to_regnamespace($1) and c.relkind not in ('i', 'I', 't')
        and not exists(
            select from pg_depend as d
            where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e'
        )
), indexes as (
    select
        x.indexrelid, x.indrelid, x.indisvalid, x.indisunique, x.indexprs, x.indpred,
        (
            select bool_and(o.opcnamespace = 'pg_catalog'::regnamespace)
            from unnest(x.indclass::oid[]) as one (opclass)
            join pg_opclass as o on o.oid = one.opclass
        ) as is_usual
    from pg_index as x
)

select
    relname::text as name,
    'relation' as kind,
    concat_ws(
        ' ',
        case relkind
            when 'r' then 'table' when 'S' then 'sequence' when 'v' then 'view'
            else 'of kind ' || relkind::text
        end,
        case when relpersistence <> 'p' then 'not kept' end,
        case when relrowsecurity then 'with row security' end,
        case when relforcerowsecurity then 'for its owner, too' end
    ) as part
from relations
union all
select
    c.relname,
    'column',
    concat_ws(
        ' ', quote_ident(a.attname), format_type(a.atttypid, a.atttypmod),
        case when a.attnotnull then 'not null' end,
        case when a.attidentity <> '' then 'identity ' || a.attidentity::text end,
        case when a.attgenerated <> '' then 'generated ' || a.attgenerated::text end,
        case when a.attcollation <> y.typcollation then 'collate ' || a.attcollation::regcollation end,
        'default ' || pg_get_expr(d.adbin, d.adrelid)
    )
from relations as c
join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
join pg_type as y on y.oid = a.atttypid
left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
where c.relkind <> 'S'
union all
select c.relname, 'inheritance', concat_ws(' of ', i.inhrelid::regclass, i.inhparent::regclass)
from relations as c
join pg_inherits as i on c.oid in (i.inhrelid, i.inhparent)
union all
select c.relname, 'constraint', concat_ws(' ', quote_ident(k.conname), pg_get_constraintdef(k.oid))
from relations as c
join pg_constraint as k on k.conrelid = c.oid and k.contype <> 'n'
union all
select
    c.relname,
    'index',
    concat_ws(
        ' ', pg_get_indexdef(x.indexrelid), case when not x.indisvalid then 'invalid' end,
        case when not x.is_usual then 'by operators of its own' end
    )
from relations as c
join indexes as x on x.indrelid = c.oid
where x.indisunique or x.indexprs is not null or x.indpred is not null or not x.is_usual
union all
select c.relname, 'trigger', concat_ws(' ', pg_get_triggerdef(t.oid), t.tgenabled)
from relations as c
join pg_trigger as t on t.tgrelid = c.oid
join pg_proc as f on f.oid = t.tgfoid
where
    -- A foreign key's own, whose names differ everywhere, unless they are off. Any other one that is
    -- called internal was made so, by whoever can write to the system's catalogs, to be overlooked.
    not t.tgisinternal
    or t.tgenabled <> 'O'
    or f.pronamespace <> 'pg_catalog'::regnamespace
    or f.proname !~ '^RI_FKey_'
union all
select c.relname, 'rule', concat_ws(' ', pg_get_ruledef(r.oid), r.ev_enabled)
from relations as c
join pg_rewrite as r on r.ev_class = c.oid
union all
select c.relname, 'policy', concat_ws(' ', quote_ident(p.polname), p.polcmd)
from relations as c
join pg_policy as p on p.polrelid = c.oid
union all
select
    c.relname,
    'sequence',
    concat_ws(
        ' ', s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmin, s.seqmax, s.seqcache,
        s.seqcycle
    )
from relations as c
join pg_sequence as s on s.seqrelid = c.oid
union all
select
    p.proname,
    'function',
    concat_ws(
        chr(10), pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), l.lanname,
        p.prokind, p.provolatile, p.proparallel, p.prosecdef, p.proisstrict, p.proleakproof,
        p.proconfig, coalesce(pg_get_function_sqlbody(p.oid), p.prosrc)
    )
from pg_proc as p
join pg_language as l on l.oid = p.prolang
where p.pronamespace = to_regnamespace($1)
union all
select t.typname, 'type', t.typtype::text
from pg_type as t
left join pg_class as c on c.oid = t.typrelid
where
    t.typnamespace = to_regnamespace($1) and t.typtype <> 'b'
    and (c.relkind is null or c.relkind = 'c')
union all
select o.oprname, 'operator', concat_ws(' ', o.oprleft::regtype, o.oprright::regtype, o.oprcode)
from pg_operator as o
where o.oprnamespace = to_regnamespace($1)
union all
select c.collname, 'collation', c.collprovider::text
from pg_collation as c
where c.collnamespace = to_regnamespace($1)

-- name: drawn_ids
-- The first of the events that have drawn an id ($1: topics, $2: how its field begins, $3: how many bytes
-- of it are looked at), or with $4 of those alone that wait for their number, that is not among
-- those that are kept unique. The state is JSON, whose strings have no bare quotation mark. `offset 0`
-- makes the id before the join: that would keep whole states otherwise, on disk beyond work_mem.
select min(d.append_id) as append_id
from (
    select
        e.append_id,
        split_part(
            encode(
                substring(e.state from position(n.begins in e.state) + length(n.begins) for $3::int),
                'escape'
            ),
            '"', 1
        ) as public_id
    from (
        select append_id, topic, state from ledger.events where not $4::boolean
        union all
        select w.append_id, w.topic, w.state
        from ledger.pending as p
        join ledger.events as w on w.append_id = p.append_id
        where $4::boolean
    ) as e
    join unnest($1::text[], $2::bytea[]) as n (topic, begins) on n.topic = e.topic
    where position(n.begins in e.state) > 0
    offset 0
) as d
where not exists (select from ledger.public_ids as p where p.public_id = d.public_id)

-- name: drawn_place
-- Where an event stands in the log; null while it waits for its number.
select position from ledger.log where append_id = $1

-- name: copied
-- The events of a range of ids, in the order of those: what is checked of each.
select e.append_id, e.originator_version, e.originator_id, e.mac, e.topic, e.state
from ledger.events as e
where e.append_id >= $1 and e.append_id <= $2
order by e.append_id

-- name: copied_apart
-- The same of a range of positions, in the order of those: each event is looked up, at twice the cost.
select e.append_id, e.originator_version, e.originator_id, e.mac, e.topic, e.state
from ledger.log as l
join ledger.events as e on e.append_id = l.append_id
where l.position >= $1 and l.position <= $2
order by l.position

-- name: events_count
-- How many events there are, numbered or not.
select count(*) as events from ledger.events

-- name: first_events
-- The streams that had begun by a position, in the order of their ids, and where.
select e.originator_id, l.position
from ledger.events as e
join ledger.log as l on l.append_id = e.append_id
where e.originator_version = 1 and l.position <= $1
order by e.originator_id

-- name: hashes
-- What the ledger's own functions make of an event.
select
    ledger.leaf_hash($1::bigint, $2::bigint, $3::uuid, $4::bigint, $5::text, $6::bytea) as leaf,
    ledger.event_digest($3::uuid, $4::bigint, $5::text, $6::bytea) as digest

-- name: has_more
-- Has the log anything behind a position?
select exists(select from ledger.log where position > $1)

-- name: head
-- What the sequencer goes on from; one row, unless somebody made it otherwise. And how many rows of
-- the log have no position at all, which reading it in order does not meet.
select
    h.id,
    h.size,
    case when octet_length(h.tree) > 2048 then '\x00'::bytea else h.tree end as tree,
    (select count(*) from ledger.log as l where l.position is null) as unplaced
from ledger.head as h

-- name: kept_nodes
-- The nodes at these places, null where there is none, and whether there are some behind it all the same.
select
    w.level, w.node_index, n.hash,
    exists(
        select from ledger.tree_nodes as b
        where b.level = w.level and b.node_index > w.node_index
    ) as has_others
from unnest($1::int[], $2::bigint[]) as w (level, node_index)
left join ledger.tree_nodes as n on n.level = w.level and n.node_index = w.node_index
order by w.level, w.node_index

-- name: kept_ids
-- How many ids of these are among those that are kept unique. They are in one text, since each member of
-- an array costs as much as looking it up; none of them has a quotation mark. PostgreSQL 17 and later
-- find all of them in one scan of the index. The subquery keeps the planner from looking at each.
select count(*) as kept
from ledger.public_ids
where public_id = any(array(select d collate "C" from string_to_table($1::text, '"') as t (d)))

-- name: late_before
-- Of some events ($1, of the streams $2), the times of the $3 ones up to a position ($4) that were appended
-- before each; null where one says none at its beginning. One that was set aside, and written again as it
-- was, counts as appended when it was at first.
with firsts as (
    select e.append_id, min(s.append_id) as first
    from ledger.set_aside as s
    cross join lateral (
        select e.append_id
        from ledger.events as e
        where
            e.originator_id = s.originator_id and e.originator_version = s.originator_version
            and e.topic = s.topic and e.state = s.state and e.mac is not distinct from s.mac
        offset 0
    ) as e
    where s.originator_id = any($2::uuid[])
    group by e.append_id
)

select
    d.append_id,
    array(
        select
            substring(
                encode(substring(b.state from 1 for 120), 'escape') from '"at":"([0-9TZ:.-]+)"'
            )
        from (
            select e.state
            from ledger.events as e
            join ledger.log as l on l.append_id = e.append_id
            where e.append_id < least(d.append_id, f.first) and l.position <= $4::bigint
            order by e.append_id desc
            limit $3
        ) as b
    ) as times
from unnest($1::bigint[]) as d (append_id)
left join firsts as f on f.append_id = d.append_id
order by d.append_id

-- name: misdated
-- The first checkpoint whose date cannot be right, why, and how many there are: beyond $1, before an
-- earlier one of its lineage, or before the time of the event at its end, which may be $2 later.
select w.size, w.why, count(*) over () as misdated
from (
    select
        c.size,
        case
            when c.made_at > $1::timestamptz then 'ahead of now'
            when c.made_at < lag(c.made_at) over (partition by c.origin order by c.size)
                then 'before an earlier one'
            when
                to_char(
                    (c.made_at + $2::interval) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'
                ) < substring(
                    encode(substring(e.state from 1 for 120), 'escape') from '"at":"([0-9TZ:.-]+)"'
                )
                then 'before the event at its end'
        end as why
    from ledger.checkpoints as c
    left join ledger.log as l on l.position = c.size
    left join ledger.events as e on e.append_id = l.append_id
) as w
where w.why is not null
order by w.size
limit 1

-- name: nodes_beyond
-- The first node that the log has not come to.
select n.level, n.node_index
from generate_series(1, 7) as l (level)
join ledger.tree_nodes as n on n.level = l.level
where n.node_index >= (select size >> (8 * l.level) from ledger.head where id = 1)
order by n.level, n.node_index
limit 1

-- name: note
-- The note of a stored checkpoint; of one that is longer than ours, nothing.
select case when octet_length(note) > 4096 then '' else note end as note
from ledger.checkpoints where origin = $1 and size = $2

-- name: numbered
-- What the log has of a range, in its order, $3 rows of it at most: positions, the ids of their events,
-- and the hashes, joined. A hash of another size is left out: there are too few then.
select
    coalesce(array_agg(l.position order by l.position), '{}') as positions,
    coalesce(array_agg(coalesce(l.append_id, 0) order by l.position), '{}') as append_ids,
    coalesce(
        string_agg(l.leaf_hash, ''::bytea order by l.position)
        filter (where octet_length(l.leaf_hash) = 32),
        ''::bytea
    ) as hashes
from (
    select position, append_id, leaf_hash
    from ledger.log
    where position >= $1 and position <= $2
    order by position
    limit $3
) as l

-- name: people
-- The events of the ledger of accounts that say who could act, of at most $2 bytes each, with their MACs:
-- the numbered ones in their order, and then those that wait.
select
    l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state,
    case when octet_length(e.mac) > 64 then '' else e.mac end as mac
from ledger.events as e
left join ledger.log as l on l.append_id = e.append_id
where
    e.topic = any($1::text[]) and octet_length(e.state) <= $2::integer
    and (
        l.append_id is not null
        or exists(select from ledger.pending as p where p.append_id = e.append_id)
    )
order by 1 nulls last, 2

-- name: people_after
-- The same of the $2 positions after one, of at most $4 bytes each, until they have $5 bytes.
with measured as (
    select
        l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state,
        case when octet_length(e.mac) > 64 then '' else e.mac end as mac,
        sum(octet_length(e.state)) over w as bytes_before
    from ledger.log as l
    join ledger.events as e on e.append_id = l.append_id
    where
        l.position > $1 and l.position <= $1 + $2::bigint and e.topic = any($3::text[])
        and octet_length(e.state) <= $4::integer
    window w as (order by l.position rows between unbounded preceding and 1 preceding)
)
select position, append_id, originator_id, originator_version, topic, state, mac
from measured
where coalesce(bytes_before, 0) < $5
order by position

-- name: people_signed
-- The $1 largest stored checkpoints, in notes of at most $2 bytes.
select size, origin, note
from ledger.checkpoints
where octet_length(note) <= $2::integer and octet_length(origin) <= 2048
order by size desc
limit $1

-- name: people_waiting
-- The same of what waits for its number: the next $2 after an append id, of at most $4 bytes each.
select
    null::bigint as position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state,
    case when octet_length(e.mac) > 64 then '' else e.mac end as mac
from ledger.pending as p
join ledger.events as e on e.append_id = p.append_id
where
    p.append_id > $1 and e.topic = any($3::text[])
    and octet_length(e.state) <= $4::integer
order by 2
limit $2

-- name: plan
-- Reading the log in its order: by its index, row by row. Sorting it whole would take its size again
-- on disk before the first row came. Parallel workers are left out: to hand a row on costs them half as
-- much as to read it, and each process reads a part already. For this transaction; 'on' lets the planner
-- choose again.
select
    set_config('enable_sort', $1, true),
    set_config('enable_hashjoin', $1, true),
    set_config('enable_mergejoin', $1, true),
    set_config('enable_gathermerge', $1, true)

-- name: read_whole
-- Reading tables whole, in whatever order, as the logins of ledgers do not otherwise.
select set_config('enable_seqscan', 'on', true)

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

-- name: server
-- Which run of which server this is.
select concat_ws(
    ' ', system_identifier::text, pg_postmaster_start_time()::text, pg_is_in_recovery()::text
) as server
from pg_control_system()

-- name: is_citus
-- Is this database a node of a Citus cluster?
select exists(select from pg_extension where extname = 'citus') as is_citus

-- name: shards
-- The shards of a ledger's tables in a Citus cluster: the table, the shard's number, and whether this node
-- has it. None of a ledger that was not given a node of its own.
select
    c.relname::text as name,
    s.shardid::text as number,
    exists(
        select from pg_dist_placement as p
        join pg_dist_local_group as here using (groupid)
        where p.shardid = s.shardid
    ) as is_here
from pg_dist_shard as s
join pg_class as c on c.oid = s.logicalrelid
where c.relnamespace = to_regnamespace($1)

-- name: size
-- About how many events there are to read.
select size from ledger.head

-- name: slices_begun
-- What has begun these streams by a position, or is about to be numbered, of at most $3 bytes.
select
    l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state, e.mac
from ledger.events as e
left join ledger.log as l on l.append_id = e.append_id
where
    e.originator_id = any($1::uuid[]) and e.originator_version = 1
    and octet_length(e.state) <= $3::integer
    and (
        l.position <= $2
        or exists(select from ledger.pending as p where p.append_id = e.append_id)
    )

-- name: slices_changes
-- How many rows of the log were changed, or lost their number, as PostgreSQL has counted since its
-- statistics were reset: other than by a reset, this grows only where somebody has removed triggers.
select
    pg_stat_get_tuples_updated('ledger.events'::regclass)
    + pg_stat_get_tuples_updated('ledger.log'::regclass)
    + pg_stat_get_tuples_deleted('ledger.log'::regclass) as changes

-- name: slices_hold
-- Where the pass through the log is; nobody waits for whoever is at it. Nothing is read of a column that is
-- longer than what the service writes: then the MAC does not hold.
select
    position, case when octet_length(tree) > 2048 then '\x00'::bytea else tree end as tree, began_at,
    finished_at, size, fault_position,
    case when octet_length(fault) > 4096 then '' else fault end as fault,
    case when octet_length(mac) > 64 then ''::bytea else mac end as mac
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
-- where that is gone. Last, whether that is behind the one before it in its stream, alone with its
-- version: `in_order` is the text of `macs` (service/evidence/checkpoints), which returns digests instead
-- of states; folders share whole statements alone.
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
    position, append_id, leaf_hash, event, originator_id, originator_version, topic, state, mac,
    (
        select
            count(*) = least(m.originator_version, 2)
            and bool_and(coalesce(
                s.originator_version = m.originator_version
                or (p.position < m.position and s.append_id < m.append_id), false
            ))
        from ledger.events as s
        left join ledger.log as p on p.append_id = s.append_id
        where
            s.originator_id = m.originator_id
            and s.originator_version in (m.originator_version - 1, m.originator_version)
    ) as in_order
from measured as m
where coalesce(bytes_before, 0) < $3
order by position

-- name: slices_signed
-- The first $6 stored checkpoints of some origins ($3) in a range of sizes, or of all beyond one, without
-- those that are set aside: beyond a size of each origin ($4), up to another ($5). Of a note that is longer
-- than ours, nothing is read.
select c.size, c.origin, case when octet_length(c.note) > 4096 then '' else c.note end as note
from unnest($3::text[], $4::bigint[], $5::bigint[]) as o (origin, shared, lost)
join ledger.checkpoints as c on c.origin = o.origin
where c.size > $1 and ($2::bigint is null or c.size <= $2) and (c.size <= o.shared or c.size > o.lost)
order by c.size
limit $6

-- name: session
-- The settings in force on this connection: of its startup options, or else of its login or database.
select name, pg_catalog.current_setting(name) as setting from unnest($1::text[]) as asked (name)

-- name: snapshot_export
-- This transaction's snapshot, for others.
select pg_export_snapshot() as snapshot

-- name: states
-- The events between two positions, in order.
select e.state
from ledger.log as l
join ledger.events as e on e.append_id = l.append_id
where l.position > $1 and l.position <= $2
order by l.position

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

-- name: waiting_streams
-- The streams of what waits for its number.
select distinct e.originator_id
from ledger.pending as p
join ledger.events as e on e.append_id = p.append_id

-- name: waiting
-- What waits for its number: the event, the position of what has one already, what its MAC is of, and
-- the MAC. The digest is made here, as for the sequencer: an event can be large.
select
    p.append_id, e.append_id as event, e.originator_id, e.originator_version, l.position, e.topic,
    ledger.event_digest(e.originator_id, e.originator_version, e.topic, e.state) as digest,
    case when octet_length(e.mac) > 64 then ''::bytea else e.mac end as mac
from ledger.pending as p
left join ledger.events as e on e.append_id = p.append_id
left join ledger.log as l on l.append_id = p.append_id
order by p.append_id
