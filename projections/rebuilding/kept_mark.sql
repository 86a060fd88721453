-- The kept rows of a read model have been brought up to a position.
update ledger.read_models set previous_position = $2 where name = $1
