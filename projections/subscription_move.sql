-- Moves the checkpoint, in the transaction of the subscriber's writes.
update ledger.subscriptions set position = $2 where name = $1
