-- name: lines
-- What is stored under these keys of some checkpoints of an origin, the largest first; at most $5.
select size, name, key_id, signature
from ledger.checkpoint_signatures
where
    origin = $1 and size = any($2::bigint[])
    and (name, key_id) in (select * from unnest($3::text[], $4::bytea[]))
order by size desc, made_at, name, key_id
limit $5

-- name: note_refusal
-- Note that a witness finds a checkpoint inconsistent; the first time counts.
insert into ledger.witness_refusals (name, key_id, origin, size, refused_at)
values ($1, $2, $3, $4, now())
on conflict do nothing

-- name: newest
-- The $3 largest checkpoints of an origin that are smaller than $2, or of all, the largest first.
select size, note, made_at
from ledger.checkpoints
where origin = $1 and size < coalesce($2, 9223372036854775807)
order by size desc
limit $3

-- name: refusals
-- Which of these witnesses refuse, and since when.
select name, key_id, origin, size, refused_at
from ledger.witness_refusals
where (name, key_id) in (select * from unnest($1::text[], $2::bytea[]))

-- name: signed_notes
-- What others have signed of the largest thousand checkpoints, the largest first.
select c.origin, c.size, c.note, s.name, s.key_id, s.signature
from (
    select origin, size, note from ledger.checkpoints order by size desc, origin limit 1000
) as c
join ledger.checkpoint_signatures as s using (origin, size)
order by c.size desc, c.origin, s.made_at, s.name, s.key_id

-- name: withdraw_refusal
-- A witness has signed again.
delete from ledger.witness_refusals where name = $1 and key_id = $2
