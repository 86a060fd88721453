-- A partner referred a business.
insert into ledger.onboardings (
    onboarding_id, stream_id, partner_id, partner_user_id, entity_id,
    magic_link_hash, expires_at, state, started_at
)
select * from unnest(
    $1::text[], $2::uuid[], $3::text[], $4::text[], $5::text[],
    $6::bytea[], $7::timestamptz[], $8::text[], $9::timestamptz[]
)
