-- One onboarding.
select * from ledger.onboardings where onboarding_id = $1
