-- The objects of an erased claim have gone, and these rows go too. A younger one stays: its URL could
-- still take an upload, which the next sweep finds by its row.
delete from ledger.uploads where claim_stream = $1 and minted_at < $2
