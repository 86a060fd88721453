-- The checkpoint, held until the end of the transaction; waits for whoever holds it.
select position from ledger.subscriptions where name = $1 for update
