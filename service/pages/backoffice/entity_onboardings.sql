-- The onboardings that brought a business.
select onboarding_id, partner_id, partner_user_id, state, started_at, completed_at
from ledger.onboardings
where entity_id = $1
order by onboarding_id
limit 20
