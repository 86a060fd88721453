-- name: insert
-- Addresses were added to the team.
insert into ledger.staff (staff_id, stream_id, address_hash, added_at)
select * from unnest($1::text[], $2::uuid[], $3::bytea[], $4::timestamptz[])

-- name: remove
-- Addresses were removed from the team.
update ledger.staff as s set removed_at = one.at
from unnest($1::text[], $2::timestamptz[]) as one (staff_id, at)
where s.staff_id = one.staff_id
