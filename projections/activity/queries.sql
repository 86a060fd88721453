-- name: at
-- The events at these positions, in order, until they have $2 bytes.
with measured as (
    select
        l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state, e.mac,
        sum(octet_length(e.state)) over w as bytes_before
    from ledger.log as l
    cross join lateral (
        select i.append_id, i.originator_id, i.originator_version, i.topic, i.state, i.mac
        from ledger.events as i where i.append_id = l.append_id offset 0
    ) as e
    where l.position = any($1::bigint[])
    window w as (order by l.position rows between unbounded preceding and 1 preceding)
)
select position, append_id, originator_id, originator_version, topic, state, mac
from measured
where coalesce(bytes_before, 0) < $2
order by position

-- name: keys_left
-- Which of these data keys exist.
select key_id from ledger.data_keys where key_id = any($1::uuid[])

-- name: looked_to
-- The row about a subject ($1) that has $4 newer ones before a position ($3), up to where the read
-- model had come ($2); nothing where there are fewer.
select position from ledger.activity
where subject = $1 and position <= $2 and position < coalesce($3::bigint, 9223372036854775807)
order by position desc
offset $4 limit 1

-- name: reached
-- How far activity has come, and the log. A statement of its own: with the figure in hand PostgreSQL plans
-- a timeline by what is left of the log, instead of guessing a third of it.
select
    (select coalesce(max(position), 0) from ledger.subscriptions where name = 'activity') as position,
    (select coalesce(max(size), 0) from ledger.head) as size

-- name: timeline
-- The newest events about a subject ($1): those that the read model knows of, up to where it had
-- come ($4); and of those beyond, put aside, or without a position yet, the ones that hold the id
-- as a value ($2, its JSON). An older page has those before a position ($5) alone; events without
-- one are newer than all others. Of the newest $8 that the read model knows, those of one topic ($6)
-- and by one kind of actor ($7, its prefix, as the stored form has it in $9), where these are given.
-- An event that the read model knows of and that is gone has nulls.
with known as (
    select wanted.position, wanted.topic, l.append_id
    from (
        select newest.position, newest.topic
        from (
            select a.position, a.topic, a.actor
            from ledger.activity as a
            where
                a.subject = $1 and a.position <= $4
                and a.position < coalesce($5::bigint, 9223372036854775807)
            order by a.position desc
            limit $8
        ) as newest
        where
            ($6::text is null or newest.topic = $6)
            and ($7::text is null or starts_with(newest.actor, $7))
        order by newest.position desc
        limit $3
    ) as wanted
    cross join lateral (
        select i.append_id from ledger.log as i where i.position = wanted.position offset 0
    ) as l
), others as (
    select l.position, l.append_id
    from ledger.log as l
    where l.position > $4 and l.position < coalesce($5::bigint, 9223372036854775807)
    union all
    select p.position, l.append_id
    from ledger.parked as p
    cross join lateral (
        select i.append_id from ledger.log as i where i.position = p.position offset 0
    ) as l
    where
        p.read_model = 'activity' and p.position <= $4
        and p.position < coalesce($5::bigint, 9223372036854775807)
    union all
    select null, append_id from ledger.pending where $5::bigint is null
), matching as (
    select o.position, e.topic, o.append_id
    from others as o
    cross join lateral (
        select i.topic, i.state from ledger.events as i where i.append_id = o.append_id offset 0
    ) as e
    where
        position($2::bytea in e.state) > 0
        and ($6::text is null or e.topic = $6)
        and ($9::bytea is null or position($9 in e.state) > 0)
)
select
    f.position, f.append_id, e.originator_id, e.originator_version, f.topic, e.state, e.mac,
    f.is_known
from (
    select position, topic, append_id, true as is_known from known
    union all
    select position, topic, append_id, false from matching
) as f
left join lateral (
    select i.originator_id, i.originator_version, i.state, i.mac
    from ledger.events as i where i.append_id = f.append_id offset 0
) as e on true
order by f.position desc nulls first, f.append_id desc
limit $3
