-- Puts events aside.
insert into ledger.parked (read_model, position, stream_id, error, parked_at)
select * from unnest($1::text[], $2::bigint[], $3::uuid[], $4::text[], $5::timestamptz[])
