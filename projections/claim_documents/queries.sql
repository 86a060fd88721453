-- name: after
-- The next linked documents in the order of their paths, for an audit that reads them all beside the
-- bucket's listing, which has the same order.
select document_id, claim_id, storage_path, size, generation, crc32c, erased
from ledger.claim_documents
where storage_path > $1
order by storage_path
limit $2

-- name: erase
-- A claim's data was erased. The links stay as facts: generated paths, sizes and checksums.
update ledger.claim_documents set erased = true where claim_id = any($1::text[])

-- name: flagged
-- What checks of documents found last, newest first.
select document_id, claim_id, reason, flagged_at
from ledger.document_flags
order by flagged_at desc, document_id, reason
limit $1
