-- The onboarding whose magic link has this hash.
select * from ledger.onboardings where magic_link_hash = $1
