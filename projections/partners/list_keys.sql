-- A partner's keys, oldest first; never a secret or its hash.
select key_id, partner_id, mode, issued_at, revoked_at
from ledger.api_keys
where partner_id = $1
order by key_id
