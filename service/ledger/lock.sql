-- Exclusive advisory locks, in one order so that two transactions cannot wait for each other.
select pg_advisory_xact_lock(key) from (select unnest($1::bigint[]) as key order by 1) as keys
