-- The checkpoint, held until the end of the transaction; no row while another process holds it.
select position from ledger.subscriptions where name = $1 for update skip locked
