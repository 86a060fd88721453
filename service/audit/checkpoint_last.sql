-- The largest checkpoint of an origin.
select note, tree, made_at from ledger.checkpoints where origin = $1 order by size desc limit 1
