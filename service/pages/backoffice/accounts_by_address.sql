-- Whose address this is, or was, in the ledger of accounts: contact or member of partners, or the
-- team's. $1 is the address, which partners' rows hold; $2 its keyed hash.
select 'partner' as kind, p.partner_id as id, p.status as state, p.partner_id
from ledger.partners as p where lower(p.email) = lower($1)
union all
select
    'member', m.member_id, case when m.removed_at is null then 'member' else 'removed' end,
    m.partner_id
from ledger.members as m where m.address_hash = $2
union all
select 'staff', s.staff_id, case when s.removed_at is null then 'staff' else 'removed' end, null
from ledger.staff as s where s.address_hash = $2
