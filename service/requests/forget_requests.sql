-- Forgets calls from before a moment, a bounded number at a time; answers how many.
with gone as (
    delete from ledger.requests where request_id in (
        select request_id from ledger.requests where at < $1 limit $2
    )
    returning 1
)
select count(*) as forgotten from gone
