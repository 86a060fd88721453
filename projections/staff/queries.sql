-- name: erase
-- Addresses were erased, under each id that they had. One that a restore had back on the team is not any
-- more: nobody could say whose it is.
update ledger.staff as s set address_hash = null, removed_at = coalesce(s.removed_at, one.at)
from unnest($1::uuid[], $2::timestamptz[]) as one (stream_id, at)
where s.stream_id = one.stream_id

-- name: remove
-- Addresses were removed from the team.
update ledger.staff as s set removed_at = one.at
from unnest($1::text[], $2::timestamptz[]) as one (staff_id, at)
where s.staff_id = one.staff_id
