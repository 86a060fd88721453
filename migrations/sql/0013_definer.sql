-- A session's temporary tables and views come before pg_catalog in a search path that does not name
-- pg_temp: a view of the name pg_stat_activity ran functions of its maker's as the owner.
create or replace function ledger.oldest_transaction_seconds() returns double precision
language sql security definer set search_path = pg_catalog, pg_temp as $$
    select coalesce(max(extract(epoch from clock_timestamp() - xact_start)), 0)::double precision
    from pg_catalog.pg_stat_activity
    where datname = current_database() and backend_type = 'client backend'
    and pid <> pg_backend_pid()
$$;
