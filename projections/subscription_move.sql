-- Moves the checkpoint, in the transaction of the subscriber's writes, and notes the event there.
update ledger.subscriptions
set position = $2, leaf_hash = (select leaf_hash from ledger.log where position = $2)
where name = $1
