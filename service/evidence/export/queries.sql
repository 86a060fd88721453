-- name: chosen
-- The log at these positions with its events, in order, until they have $2 bytes; an event that is gone
-- leaves nulls.
with measured as (
    select
        l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state,
        l.leaf_hash, sum(octet_length(e.state)) over w as bytes_before
    from ledger.log as l
    left join ledger.events as e using (append_id)
    where l.position = any($1::bigint[])
    window w as (order by l.position rows between unbounded preceding and 1 preceding)
)
select position, append_id, originator_id, originator_version, topic, state, leaf_hash
from measured
where coalesce(bytes_before, 0) < $2
order by position

-- name: indexed
-- How far activity has come, up to $1.
select least(coalesce(max(position), 0), $1::bigint) as position
from ledger.subscriptions where name = 'activity'

-- name: entity
-- The positions, from $4 up to $1, of all that concerns the entity $2 (docs/ledger-format.md), and of
-- the stream $3, in which lineages begin. Up to $5 activity tells which events can be meant, and what it
-- has put aside is looked at, too; beyond, every event is. States are searched as bytes, so that none
-- can stop it. Laterals ask an index for each row, whatever PostgreSQL believes of the tables' sizes.
with beyond as (
    select position from ledger.log where position > $5 and position <= $1
    union
    select position from ledger.parked where read_model = 'activity' and position <= $5
), named as materialized (
    select
        e.originator_id,
        split_part(split_part(s.text, '"claim_id":"', 2), '"', 1) as claim_id,
        split_part(split_part(s.text, '"onboarding_id":"', 2), '"', 1) as onboarding_id
    from (
        select position from ledger.activity where subject = $2::text and position <= $5
        union
        select position from beyond
    ) as c
    cross join lateral (select append_id from ledger.log where position = c.position limit 1) as l
    cross join lateral (
        select originator_id, state from ledger.events where append_id = l.append_id limit 1
    ) as e
    cross join lateral (select encode(e.state, 'escape') as text offset 0) as s
    where split_part(split_part(s.text, '"entity_id":"', 2), '"', 1) = $2::text
), ids as materialized (
    select claim_id as id from named where claim_id <> ''
    union
    select onboarding_id from named where onboarding_id <> ''
), streams as materialized (
    select distinct originator_id from named
), of_streams as materialized (
    select l.position, of.concerns
    from (
        select originator_id, true as concerns from streams
        union all
        select $3::uuid, false where $3::uuid not in (select originator_id from streams)
    ) as of
    cross join lateral (
        select append_id from ledger.events where originator_id = of.originator_id offset 0
    ) as e
    cross join lateral (select position from ledger.log where append_id = e.append_id limit 1) as l
    where l.position <= $1 and l.position >= $4
), mentions as (
    select a.position
    from ids
    cross join lateral (
        select position from ledger.activity where subject = ids.id and position <= $5 offset 0
    ) as a
    union
    select position from beyond
    except
    select position from of_streams
)
select position, concerns from of_streams
union all
select distinct m.position, true
from mentions as m
cross join lateral (select append_id from ledger.log where position = m.position limit 1) as l
cross join lateral (select state from ledger.events where append_id = l.append_id limit 1) as e
cross join lateral (select encode(e.state, 'escape') as text offset 0) as s
cross join lateral (
    values
    (split_part(split_part(s.text, '"claim_id":"', 2), '"', 1)),
    (split_part(split_part(s.text, '"onboarding_id":"', 2), '"', 1))
) as named_id (id)
join ids using (id)
where m.position >= $4
order by position

-- name: claim_streams
-- The streams that begin as a claim's, by events alone. States are searched as bytes, so that none can
-- stop it.
select e.originator_id
from ledger.events as e
where
    e.topic = 'ClaimCreated' and e.originator_version = 1
    and substring(encode(e.state, 'escape') from '"claim_id":"([^"]*)"') = $1::text
order by e.append_id

-- name: claim_events
-- A claim's stream so far, oldest first; the position is null where an event is not numbered, and
-- `waits` is whether it is going to be.
select
    l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state, l.leaf_hash,
    exists(select from ledger.pending as p where p.append_id = e.append_id) as waits
from ledger.events as e
left join ledger.log as l using (append_id)
where e.originator_id = $1
order by e.originator_version
