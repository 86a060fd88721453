-- A page of the partners in one state, in the order in which they applied.
select partner_id, name, email, status, applied_at
from ledger.partners
where status = $1 and ($2::text is null or partner_id > $2)
order by partner_id
limit $3
