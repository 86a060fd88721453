-- Uploads were linked to a claim.
insert into ledger.claim_documents (
    document_id, claim_id, storage_path, mime_type, size, generation, crc32c
)
select * from unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[]
)
