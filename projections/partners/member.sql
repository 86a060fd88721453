-- A partner as one member of its team sees it; no row for anybody else.
select
    m.member_id, p.partner_id, p.name, p.status, p.return_link, p.suppress_email,
    p.sandbox_epoch, p.applied_at
from ledger.members as m
join ledger.partners as p using (partner_id)
where m.partner_id = $1 and m.address_hash = $2 and m.removed_at is null
