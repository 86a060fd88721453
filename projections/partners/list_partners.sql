-- Every partner, or the one that is asked for, oldest first.
select partner_id, name, email, status, return_link, suppress_email, applied_at
from ledger.partners
where $1::text is null or partner_id = $1
order by partner_id
