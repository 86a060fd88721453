-- A partner created a claim.
insert into ledger.claim_list (
    claim_id, append_id, stream_id, partner_id, entity_id, partner_claim_id,
    partner_user_id, partner_invoice_ids, stage, created_at
)
select * from unnest(
    $1::text[], $2::bigint[], $3::uuid[], $4::text[], $5::text[], $6::text[],
    $7::text[], $8::text[], $9::text[], $10::timestamptz[]
)
