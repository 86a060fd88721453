-- A business became known.
insert into ledger.entities (
    entity_id, stream_id, name, email_hash, company_number_hash, established, registered_at
)
select * from unnest(
    $1::text[], $2::uuid[], $3::text[], $4::bytea[], $5::bytea[], $6::boolean[], $7::timestamptz[]
)
