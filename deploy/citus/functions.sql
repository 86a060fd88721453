-- Makes a ledger's functions on every node what they are on the coordinator, whose rights are right; and
-- has them planned anew at each call, because Citus needs the arguments of what writes several tables.
-- Tells each node the schema's revision, too, which `audit verify` reads there; and makes on shards those
-- triggers that Citus made on tables alone, as it does with any for TRUNCATE that a `migrate` adds.
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
select
    format(
        $$do $do$ begin
        perform set_config('citus.enable_ddl_propagation', 'off', true);
        create table if not exists public.alembic_version (version_num varchar(32) primary key);
        grant select on public.alembic_version to %1$I;
        delete from public.alembic_version;
        insert into public.alembic_version values (%2$L);
        end $do$ $$,
        'claim_ledger_' || :'ledger', version_num
    ) as told
from public.alembic_version
\gset
select format(
    $$do $do$
    declare
        one record;
    begin
        perform set_config('citus.enable_ddl_propagation', 'off', true);
        perform set_config('citus.enable_manual_changes_to_shards', 'on', true);
        for one in
            select
                t.oid, t.tgname || '_' || s.shardid as name, t.tgenabled,
                format('%%I.%%I', c.relnamespace::regnamespace, c.relname || '_' || s.shardid) as shard
            from pg_trigger as t
            join pg_class as c on c.oid = t.tgrelid
            join pg_dist_shard as s on s.logicalrelid = c.oid
            join pg_dist_placement as p on p.shardid = s.shardid
            join pg_dist_local_group as here on here.groupid = p.groupid
            where c.relnamespace = %1$L::regnamespace and not t.tgisinternal
            and t.tgfoid <> 'citus_truncate_trigger'::regproc
        loop
            continue when exists(
                select from pg_trigger as t
                where t.tgrelid = one.shard::regclass and t.tgname = one.name
            );
            execute regexp_replace(
                pg_get_triggerdef(one.oid), '^CREATE TRIGGER \S+ (.*) ON \S+ FOR EACH ',
                format('CREATE TRIGGER %%I \1 ON %%s FOR EACH ', one.name, one.shard)
            );
            if one.tgenabled = 'A' then
                execute format('alter table %%s enable always trigger %%I', one.shard, one.name);
            end if;
        end loop;
    end
    $do$ $$,
    :'ledger'
) as guarded
\gset
select n.nodename, n.nodeport, r.success, r.result
from pg_dist_node as n
cross join unnest(array[:'same', :'told', :'guarded']) as one (command)
cross join lateral master_run_on_worker(array[n.nodename], array[n.nodeport], array[one.command], false) as r
where n.isactive and n.groupid <> 0;
