-- The object of a swept upload has gone, and its row goes too.
delete from ledger.uploads where storage_path = $1 and swept_at is not null
