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

-- name: entity
-- The positions, from $4 up to $1, of all that concerns the entity $2 (docs/ledger-format.md), and of
-- the stream $3, in which lineages begin. States are searched as bytes, so that none can stop it.
with named as materialized (
    select
        e.originator_id,
        substring(s.text from '"claim_id":"([^"]*)"') as claim_id,
        substring(s.text from '"onboarding_id":"([^"]*)"') as onboarding_id
    from ledger.log as l
    join ledger.events as e using (append_id)
    cross join lateral (select encode(e.state, 'escape') as text) as s
    where l.position <= $1 and substring(s.text from '"entity_id":"([^"]*)"') = $2::text
)
select l.position, e.originator_id <> $3::uuid as concerns
from ledger.log as l
join ledger.events as e using (append_id)
cross join lateral (select encode(e.state, 'escape') as text) as s
where
    l.position <= $1 and l.position >= $4
    and (
        e.originator_id = $3::uuid
        or e.originator_id in (select originator_id from named)
        or substring(s.text from '"claim_id":"([^"]*)"')
        in (select claim_id from named where claim_id is not null)
        or substring(s.text from '"onboarding_id":"([^"]*)"')
        in (select onboarding_id from named where onboarding_id is not null)
    )
order by l.position

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
-- A claim's stream so far, oldest first; the position is null where an event is not numbered yet.
select
    l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state, l.leaf_hash
from ledger.events as e
left join ledger.log as l using (append_id)
where e.originator_id = $1
order by e.originator_version
