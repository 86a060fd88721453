-- A prepared transaction is open without a session, and survives restarts. Otherwise the function of
-- revision 0013; what it says there holds here.
create or replace function ledger.oldest_transaction_seconds() returns double precision
language sql security definer set search_path = pg_catalog, pg_temp as $$
    select coalesce(max(extract(epoch from clock_timestamp() - open.since)), 0)::double precision
    from (
        select xact_start
        from pg_catalog.pg_stat_activity
        where datname = current_database() and backend_type = 'client backend'
        and pid <> pg_backend_pid()
        union all
        select prepared from pg_catalog.pg_prepared_xacts where database = current_database()
    ) as open (since)
$$;
