-- Has a ledger, after `fence.sql`, be entered by the node that has its tables. psql -v ledger=live, as a
-- superuser on the coordinator. It can be run again.
--
-- Locks, notices and sequences belong to the node that one is connected to, so that there must never be
-- two. On every other node the ledger's login is read-only by default: the service, whose URL names the
-- nodes (`…@one,two/claim_ledger?target_session_attrs=read-write`), goes on to the one where it is not.
\set ON_ERROR_STOP on
set search_path = pg_catalog, pg_temp;
\set login claim_ledger_ :ledger

select nodename as host, nodeport as port
from citus_shards
where table_name = format('%I.events', :'ledger')::regclass
\gset

-- There: wait for what is still under way, number nothing new below what is there, let the login write.
select format(
    $$do $do$
    declare
        newest bigint;
    begin
        perform set_config('citus.enable_ddl_propagation', 'off', true);
        lock table %1$I.events in exclusive mode;
        select coalesce(max(append_id), 0) into newest from %1$I.events;
        if newest >= (select last_value from %1$I.events_append_id_seq) then
            execute format(
                'alter sequence %1$I.events_append_id_seq minvalue 1 maxvalue 9223372036854775807'
                || ' restart %%s', newest + 1
            );
        end if;
        alter role %2$I reset default_transaction_read_only;
    end
    $do$ $$,
    :'ledger', :'login'
) as entering
\gset
select * from master_run_on_worker(array[:'host'], array[:port], array[:'entering'], false);

-- What a node plans in parts it copies to every node that it takes for active, and commits there, too: one
-- that fails would be every ledger's loss. So workers take each other for inactive. The coordinator knows.
select * from run_command_on_workers(
    'update pg_dist_node set isactive = false where groupid <> (select groupid from pg_dist_local_group)'
);
