-- The businesses of the person whose id has these 128 bits; see `accounts_by_person.sql`. Reads all
-- of them, so it is asked last.
with derived as (
    select
        e.entity_id, e.established, e.name,
        substr(
            sha256('\x0000000000000040'::bytea || convert_to(encode(e.email_hash, 'hex'), 'UTF8')),
            1, 16
        ) as digest
    from ledger.entities as e
    where e.email_hash is not null
)
select
    'entity' as kind, d.entity_id as id,
    case when d.established then 'established' else 'onboarding' end as state,
    d.entity_id, d.name
from derived as d
where
    $1::bytea = set_byte(
        set_byte(d.digest, 6, (get_byte(d.digest, 6) & 15) | 128),
        8, (get_byte(d.digest, 8) & 63) | 128
    )
order by d.entity_id
limit 50
