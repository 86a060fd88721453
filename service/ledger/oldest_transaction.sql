-- Seconds since the oldest transaction began that is still open; the function says whose.
select ledger.oldest_transaction_seconds() as seconds
