-- What was signed, as the database keeps it.
select origin, size, note, tree from ledger.checkpoints order by size, origin
