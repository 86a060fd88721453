-- A claim's data was erased. The links stay as facts: generated paths, sizes and checksums.
update ledger.claim_documents set erased = true where claim_id = any($1::text[])
