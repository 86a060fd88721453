-- name: concerning
-- The positions, after $1 up to $2, joined, of what concerns $4: events whose field $3 is that id, all of the
-- streams of these, and those of the claims and onboardings that these name. States are searched as
-- bytes, so that none can stop it.
with named as materialized (
    select
        e.originator_id,
        substring(s.text from '"claim_id":"([^"]*)"') as claim_id,
        substring(s.text from '"onboarding_id":"([^"]*)"') as onboarding_id
    from ledger.log as l
    join ledger.events as e using (append_id)
    cross join lateral (select encode(e.state, 'escape') as text) as s
    where
        l.position <= $2
        and position(convert_to(format('"%s":"%s"', $3::text, $4::text), 'UTF8') in e.state) > 0
)
select coalesce(string_agg(int8send(l.position), ''::bytea order by l.position), ''::bytea) as found
from ledger.log as l
join ledger.events as e using (append_id)
cross join lateral (select encode(e.state, 'escape') as text) as s
where
    l.position > $1 and l.position <= $2
    and (
        e.originator_id in (select originator_id from named)
        or substring(s.text from '"claim_id":"([^"]*)"')
        in (select claim_id from named where claim_id is not null)
        or substring(s.text from '"onboarding_id":"([^"]*)"')
        in (select onboarding_id from named where onboarding_id is not null)
    )

-- name: is_named
-- Is there an event whose field $1 is the id $2?
select exists(
    select from ledger.log as l
    join ledger.events as e using (append_id)
    where position(convert_to(format('"%s":"%s"', $1::text, $2::text), 'UTF8') in e.state) > 0
) as is_named

-- name: named
-- The numbered events of the ledger of accounts that name somebody, after an event, in the order of
-- appending, with their MACs.
select
    l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state, e.mac
from ledger.events as e
join ledger.log as l using (append_id)
where e.topic = any($1::text[]) and e.append_id > $2
order by e.append_id
limit $3
