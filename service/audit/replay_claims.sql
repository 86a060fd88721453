-- The claims, newest first as `GET /claims` has them.
select
    claim_id, partner_id, entity_id, partner_claim_id, partner_user_id, partner_invoice_ids,
    stage, created_at
from ledger.claim_list
where
    ($1::text is null or claim_id = $1)
    and ($2::text is null or entity_id = $2)
    and ($3::text is null or partner_id = $3)
order by append_id desc
