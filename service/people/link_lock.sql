-- Lets those who ask for one address's links take turns, so that none counts too few. A statement
-- of its own: in READ COMMITTED the count sees the world as of its start, which is after the wait.
select pg_advisory_xact_lock(('x' || encode(substr($1::bytea, 1, 8), 'hex'))::bit(64)::bigint)
