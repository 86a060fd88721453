-- name: made_by
-- The newest checkpoint that was made by a time.
select
    origin, size, case when octet_length(note) > 4096 then '' else note end as note
from ledger.checkpoints
where made_at <= $1 and octet_length(origin) <= 2048
order by made_at desc, size desc
limit 1

-- name: of_size
-- The newest checkpoints of a size, the newest one first: lineages can have one each, and are few.
select
    origin, size, case when octet_length(note) > 4096 then '' else note end as note
from ledger.checkpoints
where size = $1 and octet_length(origin) <= 2048
order by made_at desc
limit 20

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
-- The leaves of the index of streams (docs/ledger-format.md), in the order of the streams' ids: the hash of
-- each that had begun by position $1, and whether it is before the id $2. Both tables are read in their own
-- order and sorted: by the ids' index, each row of either would be looked up by itself.
select
    sha256('\x00'::bytea || uuid_send(e.originator_id) || int8send(l.position)) as leaf,
    e.originator_id < $2 as is_before
from ledger.events as e
join ledger.log as l on l.append_id = e.append_id
where e.originator_version = 1 and l.position <= $1
order by e.originator_id
