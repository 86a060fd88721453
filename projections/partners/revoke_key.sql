-- Keys were revoked, at once or from a moment on. Of several ends the earliest holds; that one
-- came at once is kept, so that no clock can put it off.
update ledger.api_keys as k
set
    revoked_at = least(k.revoked_at, revoked.at),
    revoked_later = revoked.later and (k.revoked_at is null or k.revoked_later)
from (
    select key_id, min(at) as at, bool_and(later) as later
    from unnest($1::text[], $2::timestamptz[], $3::boolean[]) as one (key_id, at, later)
    group by key_id
) as revoked
where k.key_id = revoked.key_id
