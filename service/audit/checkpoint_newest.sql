-- The checkpoint that was made last, of whichever lineage.
select origin, size from ledger.checkpoints order by made_at desc, size desc limit 1
