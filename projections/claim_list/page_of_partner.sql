-- A page of one partner's claims over all its entities, newest first, from after a place on.
select claim_id, entity_id, partner_user_id, partner_claim_id, stage, created_at
from ledger.claim_list
where partner_id = $1 and append_id < $2
order by append_id desc
limit $3
