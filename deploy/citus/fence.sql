-- Has nobody write to a ledger, by whichever node: its login is read-only by default on each of them, and
-- its sessions, which have what was so when they began, are ended. psql -v ledger=live -f fence.sql, as a
-- superuser on the coordinator; `enter.sql` ends it.
\set ON_ERROR_STOP on
set search_path = pg_catalog, pg_temp;
\set login claim_ledger_ :ledger

-- Citus tells every node.
alter role :"login" set default_transaction_read_only = on;

-- Twice, because a session that was beginning when it was told was not listed yet.
select format(
    $$select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity
    where usename = %L and application_name not like 'citus_internal%%'$$, -- those end with these
    :'login'
) as ending
\gset
select * from run_command_on_all_nodes(:'ending');
select pg_sleep(1);
select * from run_command_on_all_nodes(:'ending');
