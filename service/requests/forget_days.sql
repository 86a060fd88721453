-- Forgets counts of days before a moment's, all of them: they are few; answers how many.
with gone as (
    delete from ledger.request_days
    where day < ($1::timestamptz at time zone 'UTC')::date
    returning 1
)
select count(*) as forgotten from gone
