-- Gives a ledger a node of its own: psql -v ledger=live -f distribute.sql, as a superuser on the
-- coordinator, once `migrate` has run and the nodes are there. `enter.sql` says afterwards where it is.
\set ON_ERROR_STOP on
set search_path = pg_catalog, pg_temp;

-- What is unsafe is a trigger that sees a part of a table's rows. A ledger's tables are not split, and
-- theirs refuse; the statements that they refuse are refused on every node.
set citus.enable_unsafe_triggers = on;

select count(create_distributed_function(oid::regprocedure)) as functions
from pg_proc
where pronamespace = :'ledger'::regnamespace;

select citus_schema_distribute(:'ledger');

-- What was there before is still in the coordinator's own files. It goes, keys of data above all, except
-- for what refuses that: events, whose personal data is encrypted.
select count(truncate_local_data_after_distributing_table(logicalrelid)) as tables
from pg_dist_partition as p
where
    p.logicalrelid in (select oid from pg_class where relnamespace = :'ledger'::regnamespace)
    and not exists(
        select from pg_trigger as t
        where t.tgrelid = p.logicalrelid and t.tgfoid::regproc::text = :'ledger' || '.refuse_change'
    );

-- Citus plans what writes several tables when it has the arguments. Sessions that find Citus see to it by
-- themselves; those behind a transaction pooler have what their role has.
\set login claim_ledger_ :ledger
alter role :"login" set plan_cache_mode = force_custom_plan;

-- Functions come to a node with the rights that PostgreSQL gives new ones.
\ir functions.sql
