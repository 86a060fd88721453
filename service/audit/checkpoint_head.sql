-- How far the log is numbered, and the tree that its sequencer has made.
select size, tree from ledger.head where id = 1
