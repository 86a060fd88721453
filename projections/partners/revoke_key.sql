-- A key was revoked.
update ledger.api_keys as k set revoked_at = revoked.at
from unnest($1::text[], $2::timestamptz[]) as revoked (key_id, at)
where k.key_id = revoked.key_id
