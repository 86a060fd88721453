-- name: durable
-- A failover must not lose what is signed and published, whatever the session's setting.
set local synchronous_commit = on

-- name: failed
-- Count a failure of the archive.
update ledger.checkpoint_state set publication_failures = publication_failures + 1

-- name: forked
-- Whether the log has lost or changed what was published; writes only what changes.
update ledger.checkpoint_state set forked = $1 where forked <> $1

-- name: head
-- How far the log is numbered, and its sequencer's tree.
select size, tree from ledger.head where id = 1

-- name: last
-- The largest checkpoint of an origin.
select note, tree, made_at from ledger.checkpoints where origin = $1 order by size desc limit 1

-- name: leaves
-- A range of the log, each leaf recomputed from its event: how many there are, the first position
-- whose leaf does not hold, and the hashes, joined.
select
    count(*) as events,
    min(l.position) filter (
        where l.leaf_hash is distinct from ledger.leaf_hash(
            l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state
        )
    ) as altered,
    coalesce(string_agg(l.leaf_hash, ''::bytea order by l.position), ''::bytea) as leaves
from ledger.log as l
left join ledger.events as e using (append_id)
where l.position > $1 and l.position <= $2

-- name: newest
-- The checkpoint that was made last, of whichever lineage.
select origin, size from ledger.checkpoints order by made_at desc, size desc limit 1

-- name: notes
-- Every checkpoint, by size and age.
select origin, size, note from ledger.checkpoints order by size, made_at, origin

-- name: snapshot
-- Head and log as of one moment; nothing is written.
set transaction isolation level repeatable read, read only

-- name: state
-- The health of this ledger's checkpoints: what is wrong, and the last one's size and time.
select s.forked, s.publication_failures, c.size, c.made_at
from ledger.checkpoint_state as s
left join (
    select size, made_at from ledger.checkpoints order by made_at desc limit 1
) as c on true

-- name: store
-- Store a checkpoint after the one of size $3, unless another came first or one was made after $6.
insert into ledger.checkpoints (origin, size, note, tree, made_at)
select $1, $2, $4, $5, $7
where
    $3 = (select coalesce(max(size), 0) from ledger.checkpoints where origin = $1)
    and not exists (select from ledger.checkpoints where origin = $1 and made_at > $6)
on conflict do nothing
returning size

-- name: lineages
-- The stream in which the log's lineages begin, with the positions of numbered events.
select l.position, e.originator_version, e.topic, e.state
from ledger.events as e
left join ledger.log as l on l.append_id = e.append_id
where e.originator_id = $1
order by e.originator_version
