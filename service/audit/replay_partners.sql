-- The partners, oldest first. Their accounts know no claims and no entities.
select partner_id, name, email, status, return_link, suppress_email, applied_at
from ledger.partners
where $1::text is null and $2::text is null and ($3::text is null or partner_id = $3)
order by partner_id
