-- The log's size, which is its last position.
select size from ledger.head where id = 1
