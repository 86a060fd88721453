-- The lock of rebuilds, until the end of the transaction: tells that nobody works on the ledger.
select pg_try_advisory_xact_lock(hashtext('claim-ledger rebuild'), hashtext($1))
