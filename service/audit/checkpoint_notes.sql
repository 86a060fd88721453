-- Every checkpoint, by size and age.
select origin, size, note from ledger.checkpoints order by size, made_at, origin
