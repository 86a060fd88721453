-- name: pending_of_address
-- Does an application of this person wait for its review? Whoever applied became a member at the
-- same moment: one who was added to another's team can still apply for a partner of their own.
select p.partner_id
from ledger.members as m
join ledger.partners as p using (partner_id)
where
    m.address_hash = $1 and m.removed_at is null and p.status = 'pending'
    and m.added_at = p.applied_at
