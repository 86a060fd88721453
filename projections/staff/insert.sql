-- Addresses were added to the team.
insert into ledger.staff (staff_id, stream_id, address_hash, added_at)
select * from unnest($1::text[], $2::uuid[], $3::bytea[], $4::timestamptz[])
