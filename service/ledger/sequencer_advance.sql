-- The log has grown. Whoever listens, such as a stock recorder's subscription, is told once a batch.
update ledger.head set size = $1, tree = $2 where id = 1
returning pg_notify('stored_events', '')
