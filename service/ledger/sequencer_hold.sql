-- Whoever holds this row numbers events; others go on with their day.
select size, tree, part_size, part from ledger.head where id = 1 for update skip locked
