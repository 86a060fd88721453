-- These events have been applied, or are put aside anew.
delete from ledger.parked where read_model = $1 and position = any($2::bigint[])
