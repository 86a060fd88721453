-- Otherwise the function of revision 0015; what it says there holds here. On a node of a Citus cluster
-- the statement that it sees is one on the table's shard, whose name ends in the shard's number.
create or replace function ledger.refuse_change() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and tg_table_name ~ '^events(_[0-9]+)?$'
        and current_setting('claim_ledger.sets_aside', true) = 'on'
    then
        return null;
    end if;
    raise exception '% on %.% is refused: the ledger is append-only',
        tg_op, tg_table_schema, tg_table_name using errcode = 'insufficient_privilege';
end
$$;

-- Otherwise the function of revision 0038; what it says there holds here.
create or replace function ledger.write(
    commands int,
    guard_locks bigint[], guard_streams uuid[], guard_versions bigint[], guard_own boolean[],
    guard_of int[],
    upload_paths text[], upload_of int[],
    streams uuid[], versions bigint[], topics text[], states bytea[], macs bytea[], event_of int[],
    new_public_ids text[], public_id_of int[],
    key_ids uuid[], wrapped_keys bytea[], key_masters text[], key_of int[],
    out outcomes text[], out append_ids bigint[]
) language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- Whatever the tables held when a session planned it: plans are by index, and planned once.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
    stopped record;
    again text[] := '{}';
    begun uuid[] := '{}';
    kept bigint;
begin
    outcomes := array_fill('written'::text, array[commands]);

    for stopped in
        select l.command
        from (
            select
                g.command,
                case
                    when g.own then pg_try_advisory_xact_lock(g.number)
                    else pg_try_advisory_xact_lock_shared(g.number)
                end as is_locked
            from unnest(guard_locks, guard_own, guard_of) as g (number, own, command)
        ) as l
        where not l.is_locked
    loop
        outcomes[stopped.command] := 'locked';
    end loop;

    for stopped in
        select g.command, case when g.own then 'conflict' else 'moved' end as outcome
        from unnest(guard_streams, guard_versions, guard_own, guard_of)
            as g (stream, version, own, command)
        where (
            select true from ledger.events as e
            where e.originator_id = g.stream and e.originator_version = g.version + 1
        )
        order by g.own
    loop
        if outcomes[stopped.command] = 'written' then
            outcomes[stopped.command] := stopped.outcome;
        end if;
    end loop;

    if cardinality(upload_paths) > 0 then
        for stopped in
            select p.command
            from unnest(upload_paths, upload_of) as p (path, command)
            where not exists(
                select from ledger.uploads as u
                where u.storage_path = p.path and u.swept_at is null
            )
        loop
            if outcomes[stopped.command] = 'written' then
                outcomes[stopped.command] := 'upload_gone';
            end if;
        end loop;
    end if;

    if exists(select from ledger.public_ids as p where p.public_id = any(new_public_ids)) then
        select coalesce(array_agg(n.public_id), '{}') into again
        from unnest(new_public_ids, public_id_of) as n (public_id, command)
        where exists(select from ledger.public_ids as p where p.public_id = n.public_id)
        and exists(
            select from unnest(streams, event_of) as e (stream, command)
            join ledger.set_aside as s on s.originator_id = e.stream
            where e.command = n.command
            and position(convert_to('"' || n.public_id || '"', 'UTF8') in s.state) > 0
        );
    end if;

    -- Whether a stream has events is asked before the next statement adds some; and by a statement of its
    -- own, because Citus takes no subquery in the condition of `on conflict`.
    if exists(select from ledger.data_keys as d where d.key_id = any(key_ids)) then
        select coalesce(array_agg(distinct e.originator_id), '{}') into begun
        from ledger.events as e
        where e.originator_id = any(key_ids);
    end if;

    with appended as (
        insert into ledger.events (originator_id, originator_version, topic, state, mac)
        select e.stream, e.version, e.topic, e.state, e.mac
        from unnest(streams, versions, topics, states, macs, event_of)
            with ordinality as e (stream, version, topic, state, mac, command, nr)
        where outcomes[e.command] = 'written'
        order by e.nr
        returning originator_id, originator_version, append_id
    ), queued as (
        insert into ledger.pending (append_id) select append_id from appended
    ), named as (
        insert into ledger.public_ids (public_id)
        select n.public_id from unnest(new_public_ids, public_id_of) as n (public_id, command)
        where outcomes[n.command] = 'written' and n.public_id <> all(again)
    ), keyed as (
        insert into ledger.data_keys (key_id, wrapped, master_key_id)
        select k.key_id, k.wrapped, k.master_key_id
        from unnest(key_ids, wrapped_keys, key_masters, key_of)
            as k (key_id, wrapped, master_key_id, command)
        where outcomes[k.command] = 'written'
        on conflict (key_id) do update
        set wrapped = excluded.wrapped, master_key_id = excluded.master_key_id
        where data_keys.key_id <> all(begun)
        returning key_id
    )
    select
        array_agg(a.append_id order by e.nr),
        (select count(*) from unnest(key_of) as k (command) where outcomes[k.command] = 'written')
        - (select count(*) from keyed)
    into append_ids, kept
    from unnest(streams, versions) with ordinality as e (stream, version, nr)
    left join appended as a on a.originator_id = e.stream and a.originator_version = e.version;
    if kept > 0 then
        raise exception 'a stream has events, and its data key is not replaced'
            using errcode = 'unique_violation', constraint = 'data_keys_pkey';
    end if;
end
$$;
