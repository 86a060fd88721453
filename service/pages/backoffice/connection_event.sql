-- An event of a connection, by its stream and version.
select state from ledger.events where originator_id = $1 and originator_version = $2
