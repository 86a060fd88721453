-- What an id is in the ledger of accounts, and whose.
select 'partner' as kind, p.partner_id as id, p.status as state, p.partner_id
from ledger.partners as p where p.partner_id = $1
union all
select
    'key', k.key_id,
    case
        when k.revoked_at is null then k.mode
        when k.revoked_later and k.revoked_at > now() then k.mode || ', ends'
        else k.mode || ', ended'
    end,
    k.partner_id
from ledger.api_keys as k where k.key_id = $1
union all
select
    'member', m.member_id, case when m.removed_at is null then 'member' else 'removed' end,
    m.partner_id
from ledger.members as m where m.member_id = $1
union all
select 'staff', s.staff_id, case when s.removed_at is null then 'staff' else 'removed' end, null
from ledger.staff as s where s.staff_id = $1
