-- name: remove
-- Addresses were removed from the team.
update ledger.staff as s set removed_at = one.at
from unnest($1::text[], $2::timestamptz[]) as one (staff_id, at)
where s.staff_id = one.staff_id
