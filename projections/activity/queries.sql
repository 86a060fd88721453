-- name: keys_left
-- What became of these data keys: do they exist, and does a stream say that the subject was erased?
select
    asked.key_id,
    exists(select from ledger.data_keys as k where k.key_id = asked.key_id) as is_left,
    exists(
        select from ledger.events as e
        where e.originator_id = asked.key_id and e.topic = 'PersonalDataErased'
    ) as is_erased
from unnest($1::uuid[]) as asked (key_id)

-- name: reached
-- How far activity has come. A statement of its own: with the figure in hand PostgreSQL plans a
-- timeline by what is left of the log, instead of guessing a third of it.
select coalesce(max(position), 0) as position from ledger.subscriptions where name = 'activity'

-- name: timeline
-- The newest events about a subject ($1): those that the read model knows of, up to where it had
-- come ($4); and of those beyond, put aside, or without a position yet, the ones that hold the id
-- as a value ($2, its JSON). An older page has those before a position ($5) alone; events without
-- one are newer than all others.
with known as (
    select a.position, l.append_id
    from ledger.activity as a
    join ledger.log as l using (position)
    where
        a.subject = $1 and a.position <= $4
        and a.position < coalesce($5::bigint, 9223372036854775807)
    order by a.position desc
    limit $3
), others as (
    select l.position, l.append_id
    from ledger.log as l
    where l.position > $4 and l.position < coalesce($5::bigint, 9223372036854775807)
    union all
    select l.position, l.append_id
    from ledger.parked as p
    join ledger.log as l using (position)
    where
        p.read_model = 'activity' and p.position <= $4
        and p.position < coalesce($5::bigint, 9223372036854775807)
    union all
    select null, append_id from ledger.pending where $5::bigint is null
), matching as (
    select o.position, o.append_id
    from others as o
    join ledger.events as e using (append_id)
    where position($2::bytea in e.state) > 0
)
select
    f.position, f.append_id, e.originator_id, e.originator_version, e.topic, e.state, f.is_known
from (
    select position, append_id, true as is_known from known
    union all
    select position, append_id, false from matching
) as f
join ledger.events as e using (append_id)
order by f.position desc nulls first, f.append_id desc
limit $3
