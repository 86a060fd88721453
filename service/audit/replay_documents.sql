-- The documents of the claims that are shown, by claim.
select d.document_id, d.claim_id, d.storage_path, d.mime_type, d.size, d.generation, d.crc32c
from ledger.claim_documents as d
join ledger.claim_list as l using (claim_id)
where
    ($1::text is null or l.claim_id = $1)
    and ($2::text is null or l.entity_id = $2)
    and ($3::text is null or l.partner_id = $3)
order by d.claim_id, d.document_id
