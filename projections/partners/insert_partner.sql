-- A partner applied.
insert into ledger.partners (partner_id, stream_id, name, email, status, applied_at)
select * from unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])
