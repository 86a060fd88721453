-- Paths that were minted for a claim.
select storage_path from ledger.uploads where claim_stream = $1 order by storage_path
