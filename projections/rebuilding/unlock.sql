-- Lets the next rebuild of this ledger begin.
select pg_advisory_unlock(hashtext('claim-ledger rebuild'), hashtext($1))
