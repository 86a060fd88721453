-- A partner was approved, declined or revoked.
update ledger.partners as p set status = changed.status
from unnest($1::text[], $2::text[]) as changed (partner_id, status)
where p.partner_id = changed.partner_id
