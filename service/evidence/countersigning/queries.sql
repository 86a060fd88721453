-- name: demanded
-- What is stored of a checkpoint under these keys ($3, $4), or under the id that a certificate ($5) has with
-- whichever name; at most $6.
select s.name, s.key_id, s.signature
from ledger.checkpoint_signatures as s
where
    s.origin = $1 and s.size = $2
    and (
        (s.name, s.key_id) in (select * from unnest($3::text[], $4::bytea[]))
        or exists(
            select from unnest($5::bytea[]) as a (anchor)
            where s.key_id = substring(
                sha256(convert_to(s.name, 'UTF8') || '\x0a'::bytea || a.anchor) from 1 for 4
            )
        )
    )
order by s.made_at, s.name, s.key_id
limit $6

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
-- The notes of some checkpoints of an origin; of one that is longer than ours, nothing.
select size, case when octet_length(note) > 4096 then '' else note end as note
from ledger.checkpoints where origin = $1 and size = any($2::bigint[])

-- name: refusals
-- Which of these witnesses refuse.
select name, key_id
from ledger.witness_refusals
where (name, key_id) in (select * from unnest($1::text[], $2::bytea[]))

-- name: signed_notes
-- Those of the largest thousand checkpoints of which others have signed something, the largest first; of a
-- note that is longer than ours, nothing.
select
    c.origin, c.size,
    case when octet_length(c.note) > 4096 then '' else c.note end as note
from (
    select origin, size, note from ledger.checkpoints
    where octet_length(origin) <= 2048
    order by size desc, origin
    limit 1000
) as c
where exists(
    select from ledger.checkpoint_signatures as s where s.origin = c.origin and s.size = c.size
)
order by c.size desc, c.origin

-- name: withdraw_refusal
-- A witness has signed again.
delete from ledger.witness_refusals where name = $1 and key_id = $2
