-- name: made_by
-- The newest checkpoint that was made by a time.
select origin, size, note from ledger.checkpoints
where made_at <= $1
order by made_at desc, size desc
limit 1

-- name: of_size
-- The newest checkpoints of a size, the newest one first: lineages can have one each, and are few.
select origin, size, note from ledger.checkpoints where size = $1 order by made_at desc limit 20

-- name: stream_after
-- The first stream beyond an id that had begun by position $2, and where.
select e.originator_id, l.position
from ledger.events as e
cross join lateral (select position from ledger.log where append_id = e.append_id limit 1) as l
where e.originator_id > $1 and e.originator_version = 1 and l.position <= $2
order by e.originator_id
limit 1

-- name: stream_at
-- Where a stream begins, if it had begun by position $2.
select l.position
from ledger.events as e
cross join lateral (select position from ledger.log where append_id = e.append_id limit 1) as l
where e.originator_id = $1 and e.originator_version = 1 and l.position <= $2

-- name: stream_before
-- The last stream before an id that had begun by position $2, and where.
select e.originator_id, l.position
from ledger.events as e
cross join lateral (select position from ledger.log where append_id = e.append_id limit 1) as l
where e.originator_id < $1 and e.originator_version = 1 and l.position <= $2
order by e.originator_id desc
limit 1

-- name: stream_leaves
-- The next $4 streams after an id, as leaves of the index of streams (docs/ledger-format.md): of those
-- that had begun by position $2 the hashes, joined, and how many of them are before the id $3; and the
-- last id, whatever it is. A page at a time: a cursor would hold a snapshot for as long as it takes.
with page as materialized (
    select originator_id, append_id
    from ledger.events
    where originator_id > $1 and originator_version = 1
    order by originator_id
    limit $4
), placed as (
    select p.originator_id, l.position
    from page as p
    cross join lateral (select position from ledger.log where append_id = p.append_id limit 1) as l
    where l.position <= $2
)
select
    (select originator_id from page order by originator_id desc limit 1) as last,
    count(*) filter (where originator_id < $3) as before,
    coalesce(string_agg(
        sha256('\x00'::bytea || uuid_send(originator_id) || int8send(position)),
        ''::bytea order by originator_id
    ), ''::bytea) as leaves
from placed
