-- A table of a read model's shape and without its rows, for this transaction only.
create temporary table the_table (like ledger.the_table including all) on commit drop
