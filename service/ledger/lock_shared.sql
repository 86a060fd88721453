-- Shared advisory locks, in the same order as the exclusive ones.
select pg_advisory_xact_lock_shared(key) from (select unnest($1::bigint[]) as key order by 1) as keys
