-- name: newest
-- The largest checkpoint of an origin; of a note that is longer than ours, nothing.
select size, case when octet_length(note) > 4096 then '' else note end as note
from ledger.checkpoints where origin = $1 order by size desc limit 1

-- name: progress
-- How far the tiles are written, and that they hold; writes only what changes.
update ledger.checkpoint_state set tiles_size = $1, tiles_unsound = false
where tiles_unsound or tiles_size is distinct from $1

-- name: records
-- What the records of a range of the log are made of, at most $3 of them, until their events have $4
-- bytes.
with measured as (
    select
        l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state,
        sum(octet_length(e.state)) over w as bytes_before
    from ledger.log as l
    join ledger.events as e using (append_id)
    where l.position > $1 and l.position <= least($2, $1 + $3::int)
    window w as (order by l.position rows between unbounded preceding and 1 preceding)
)
select
    position, append_id, originator_id, originator_version, topic,
    encode(sha256(state), 'hex') as digest
from measured
where coalesce(bytes_before, 0) < $4
order by position

-- name: sizes
-- The sizes of an origin's checkpoints beyond one, at most $3 of them.
select size from ledger.checkpoints where origin = $1 and size > $2 order by size limit $3

-- name: state
-- How far the tiles are written, and whether they, or the log, do not hold.
select tiles_size, tiles_unsound from ledger.checkpoint_state

-- name: unsound
-- The tiles, or the log that they follow from, do not hold.
update ledger.checkpoint_state set tiles_unsound = true where not tiles_unsound
