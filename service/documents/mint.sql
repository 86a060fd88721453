-- A path was minted.
insert into ledger.uploads (storage_path, claim_stream, mime_type, max_bytes, minted_at)
values ($1, $2, $3, $4, $5)
