-- One rebuild a ledger at a time. Held by the session: it ends with it, however it ends.
select pg_try_advisory_lock(hashtext('claim-ledger rebuild'), hashtext($1))
