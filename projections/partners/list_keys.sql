-- A partner's keys, oldest first, when each was last used, and the epoch of the sandbox that test
-- keys work in; never a secret or its hash.
select
    k.key_id, k.partner_id, k.mode, k.issued_at, k.revoked_at, k.revoked_later, u.used_at,
    p.sandbox_epoch
from ledger.api_keys as k
join ledger.partners as p using (partner_id)
left join ledger.key_uses as u using (key_id)
where k.partner_id = $1
order by k.key_id
