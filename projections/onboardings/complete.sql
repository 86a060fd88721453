-- The person finished.
update ledger.onboardings as o set state = 'completed', completed_at = done.at
from unnest($1::text[], $2::timestamptz[]) as done (onboarding_id, at)
where o.onboarding_id = done.onboarding_id
