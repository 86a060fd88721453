-- Forgets what was put aside beyond a position: a log that was cut has it no more.
delete from ledger.parked where read_model = $1 and position > $2
