-- Keeps rebuilds of the ledger out until the transaction ends; false while there is one.
select pg_try_advisory_xact_lock_shared(hashtext('claim-ledger rebuild'), hashtext($1)) as is_free
