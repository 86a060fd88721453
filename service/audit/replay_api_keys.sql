-- The partners' keys, oldest first, never a secret or its hash.
select key_id, partner_id, mode, issued_at, revoked_at
from ledger.api_keys
where $1::text is null and $2::text is null and ($3::text is null or partner_id = $3)
order by key_id
