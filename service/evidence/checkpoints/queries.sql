-- name: add_signature
-- Keep what somebody signed of a checkpoint, whatever else is there under that key.
insert into ledger.checkpoint_signatures (origin, size, name, key_id, signature, made_at)
values ($1, $2, $3, $4, $5, now())
on conflict do nothing

-- name: failed
-- Count a failure of the archive.
update ledger.checkpoint_state set publication_failures = publication_failures + 1

-- name: finding
-- When the log was last verified whole, in slices, what was found, and the MAC of it. Nothing is read of a
-- column that is longer than what the service writes: then the MAC does not hold.
select
    position, case when octet_length(tree) > 2048 then '\x00'::bytea else tree end as tree, began_at,
    finished_at, size, fault_position,
    case when octet_length(fault) > 4096 then '' else fault end as fault,
    case when octet_length(mac) > 64 then ''::bytea else mac end as mac
from ledger.log_verification
where id = 1

-- name: forked
-- Whether the log has lost or changed what was published; writes only what changes.
update ledger.checkpoint_state set forked = $1 where forked <> $1

-- name: head
-- How far the log is numbered, and its sequencer's tree; of a longer one than there is, a byte, which is none.
select
    size, case when octet_length(tree) > 2048 then '\x00'::bytea else tree end as tree
from ledger.head where id = 1

-- name: last
-- The largest checkpoint of an origin. Nobody signs its date. Of a note or a tree that is longer than ours,
-- nothing is read.
select
    size, case when octet_length(note) > 4096 then '' else note end as note,
    case when octet_length(tree) > 2048 then '\x00'::bytea else tree end as tree, made_at
from ledger.checkpoints
where origin = $1
order by size desc
limit 1

-- name: leaf
-- Does the log have this leaf at a position? Another database would have another one there.
select position from ledger.log where position = $1 and leaf_hash = $2

-- name: leaves
-- A range of the log until its events have $3 bytes, each leaf recomputed from its event: how many
-- there are, where they end if those bytes ended them, the first position whose leaf does not hold,
-- and the hashes, joined.
with measured as (
    select
        l.position, l.leaf_hash,
        e.append_id, e.originator_id, e.originator_version, e.topic, e.state,
        sum(octet_length(e.state)) over w as bytes_before
    from ledger.log as l
    left join ledger.events as e using (append_id)
    where l.position > $1 and l.position <= $2
    window w as (order by l.position rows between unbounded preceding and 1 preceding)
)
select
    count(*) as events,
    case when sum(octet_length(m.state)) >= $3 then max(m.position) end as ended_at,
    min(m.position) filter (
        where m.leaf_hash is distinct from ledger.leaf_hash(
            m.position, m.append_id, m.originator_id, m.originator_version, m.topic, m.state
        )
    ) as altered,
    coalesce(string_agg(m.leaf_hash, ''::bytea order by m.position), ''::bytea) as leaves
from measured as m
where coalesce(m.bytes_before, 0) < $3

-- name: macs
-- What the MACs of a range of the log are of, the MACs, and whether each event is behind the one
-- before it in its stream, alone with its version; until they have $4 bytes. `in_order` is the text of
-- `slices_rows` (service/evidence/verify), a part of a statement: folders share whole ones alone.
with measured as (
    select
        l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state, e.mac,
        sum(octet_length(e.state)) over w as bytes_before
    from ledger.log as l
    left join ledger.events as e using (append_id)
    where l.position > $1 and l.position <= least($2, $1 + $3::int)
    window w as (order by l.position rows between unbounded preceding and 1 preceding)
)
select
    position,
    ledger.event_digest(originator_id, originator_version, topic, state) as digest,
    case when octet_length(mac) > 64 then ''::bytea else mac end as mac,
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
where coalesce(bytes_before, 0) < $4
order by position

-- name: newest
-- The checkpoint that was made last, of whichever lineage, and the one before, which tells whether it is
-- alone. No origin has more bytes than that.
select origin, size from ledger.checkpoints
where octet_length(origin) <= 2048
order by made_at desc, size desc
limit 2

-- name: two_largest
-- The sizes of an origin's last two checkpoints.
select size
from ledger.checkpoints
where origin = $1
order by size desc
limit 2

-- name: notes
-- The next checkpoints of an origin beyond a size, $3 at most. Of a note that is longer than ours, nothing is
-- read.
select size, case when octet_length(note) > 4096 then '' else note end as note
from ledger.checkpoints
where origin = $1 and size > $2
order by size
limit $3

-- name: signatures
-- The lines of a checkpoint under these keys, or, where not $5, under all others, in the order in which
-- they came; at most $6.
select name, key_id, signature
from ledger.checkpoint_signatures
where
    origin = $1 and size = $2
    and ((name, key_id) in (select * from unnest($3::text[], $4::bytea[]))) = $5
order by made_at, name, key_id
limit $6

-- name: snapshot
-- Head and log as of one moment; nothing is written.
set transaction isolation level repeatable read, read only

-- name: state
-- What is wrong with this ledger's checkpoints.
select forked, publication_failures from ledger.checkpoint_state

-- name: store
-- Store a checkpoint after the one of size $3, unless another came first, or $7 is not the leaf at its
-- end: then another database took over since the log was read.
insert into ledger.checkpoints (origin, size, note, tree, made_at)
select $1, $2, $4, $5, $6
where
    $3 = (select coalesce(max(size), 0) from ledger.checkpoints where origin = $1)
    and exists (select from ledger.log where position = $2 and leaf_hash = $7)
on conflict do nothing
returning size

-- name: lineages
-- The stream in which the log's lineages begin, until its events have 2 MiB, with the positions of
-- numbered events, and whether an event waits for one. Of one beyond 1 MiB, which has room for the
-- largest note, nothing is read: it is none.
select
    m.position, m.originator_version, m.topic,
    case when m.bytes > 1048576 then '' else m.state end as state,
    exists(select from ledger.pending as p where p.append_id = m.append_id) as waits
from (
    select
        l.position, e.append_id, e.originator_version, e.topic, e.state,
        octet_length(e.state) as bytes,
        sum(octet_length(e.state)) over w as bytes_before
    from ledger.events as e
    left join ledger.log as l on l.append_id = e.append_id
    where e.originator_id = $1
    window w as (
        order by e.originator_version rows between unbounded preceding and 1 preceding
    )
) as m
where coalesce(m.bytes_before, 0) < 2097152
order by m.originator_version
