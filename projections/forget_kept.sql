-- Kept rows that have passed one of these positions lack its event: there is no way back to them.
update ledger.read_models set previous_version = null, previous_position = null
where name = $1 and previous_position >= any($2::bigint[])
