-- Has this stream begun?
select exists(
    select from ledger.events where originator_id = $1 and originator_version = 1
) as begun
