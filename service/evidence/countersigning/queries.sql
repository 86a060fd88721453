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
-- The $2 largest checkpoints of an origin, the largest first, and which of these keys lines of them name;
-- nothing is verified.
select
    c.size, c.made_at,
    array(
        select distinct s.name || ' ' || encode(s.key_id, 'hex')
        from ledger.checkpoint_signatures as s
        where
            s.origin = c.origin and s.size = c.size
            and (s.name, s.key_id) in (select * from unnest($3::text[], $4::bytea[]))
    ) as named
from ledger.checkpoints as c
where c.origin = $1
order by c.size desc
limit $2

-- name: notes
-- The notes of some checkpoints of an origin.
select size, note from ledger.checkpoints where origin = $1 and size = any($2::bigint[])

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
