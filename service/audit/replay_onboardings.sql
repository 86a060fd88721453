-- The onboardings, oldest first. Those of a claim are its entity's by its partner.
select
    o.onboarding_id, o.partner_id, o.partner_user_id, o.entity_id, o.state,
    o.started_at, o.completed_at
from ledger.onboardings as o
where
    ($1::text is null or exists(
        select from ledger.claim_list as l
        where l.claim_id = $1 and l.entity_id = o.entity_id and l.partner_id = o.partner_id
    ))
    and ($2::text is null or o.entity_id = $2)
    and ($3::text is null or o.partner_id = $3)
order by o.started_at, o.onboarding_id
