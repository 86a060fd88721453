-- Makes a ledger's functions on every node what they are on the coordinator, whose rights are right; and
-- has them planned anew at each call, because Citus needs the arguments of what writes several tables.
-- After `distribute.sql`, each `migrate`, and each `citus_activate_node`: psql -v ledger=live.
\set ON_ERROR_STOP on
set search_path = pg_catalog, pg_temp;

select
    format(
        $$do $do$ begin
        perform set_config('citus.enable_ddl_propagation', 'off', true);
        %s
        end $do$ $$,
        string_agg(
            case
                when has_function_privilege('public', oid, 'execute') then ''
                else format('revoke execute on function %s from public;', oid::regprocedure)
            end || case
                when 'plan_cache_mode=force_generic_plan' = any(proconfig)
                then format(
                    'alter function %s set plan_cache_mode = force_custom_plan;', oid::regprocedure
                )
                else ''
            end,
            ' '
        )
    ) as same
from pg_proc
where pronamespace = :'ledger'::regnamespace
\gset
select n.nodename, n.nodeport, r.success, r.result
from pg_dist_node as n
cross join lateral master_run_on_worker(array[n.nodename], array[n.nodeport], array[:'same'], false) as r
where n.isactive and n.groupid <> 0;
