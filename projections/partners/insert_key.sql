-- A key was issued.
insert into ledger.api_keys (key_id, partner_id, mode, secret_hash, issued_at)
select * from unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::timestamptz[])
