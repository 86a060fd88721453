-- How many events are numbered, and how many wait for their number.
select
    coalesce((select size from ledger.head where id = 1), 0) as size,
    (select count(*) from ledger.pending) as waiting
