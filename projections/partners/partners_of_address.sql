-- The partners whose team this person belongs to, oldest first.
select p.partner_id, p.name, p.status, p.applied_at
from ledger.members as m
join ledger.partners as p using (partner_id)
where m.address_hash = $1 and m.removed_at is null
order by p.partner_id
