-- How many events have a position.
select size from ledger.head where id = 1
