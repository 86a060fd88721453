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
