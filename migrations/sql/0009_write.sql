-- What commands write, in one round trip: lock, look again, append; the statement around it adds the
-- rows of the read models and commits.
--
-- Each statement of a volatile function sees the world as of its own start, so what follows the locks
-- sees everything that committed while others held them (decision 3). It knows no noun: a command is a
-- number, `…_of` says which command a value belongs to, and the outcome of each is its own.
--
-- guard_…: a stream that a command decided on, and the version that it decided on. Where `own`, the
-- command appends to it: locked exclusively; otherwise shared. Nobody waits: where another holds a lock
-- the outcome is `locked`. Where a stream has grown it is `conflict` if the command appends to it, and
-- `moved` if it only read it.
-- upload_…: minted uploads that have to be there still; otherwise the outcome is `upload_gone`.
-- append_ids: one for each event in the order given, null where its command was not written.
create function ledger.write(
    commands int,
    guard_locks bigint[], guard_streams uuid[], guard_versions bigint[], guard_own boolean[],
    guard_of int[],
    upload_paths text[], upload_of int[],
    streams uuid[], versions bigint[], topics text[], states bytea[], event_of int[],
    new_public_ids text[], public_id_of int[],
    key_ids uuid[], wrapped_keys bytea[], key_masters text[], key_of int[],
    out outcomes text[], out append_ids bigint[]
) language plpgsql volatile
-- Whatever the tables held when a session planned it: plans are by index, and planned once.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
    stopped record;
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

    with appended as (
        insert into ledger.events (originator_id, originator_version, topic, state)
        select e.stream, e.version, e.topic, e.state
        from unnest(streams, versions, topics, states, event_of)
            with ordinality as e (stream, version, topic, state, command, nr)
        where outcomes[e.command] = 'written'
        order by e.nr
        returning originator_id, originator_version, append_id
    ), queued as (
        insert into ledger.pending (append_id) select append_id from appended
    ), named as (
        insert into ledger.public_ids (public_id)
        select n.public_id from unnest(new_public_ids, public_id_of) as n (public_id, command)
        where outcomes[n.command] = 'written'
    ), keyed as (
        insert into ledger.data_keys (key_id, wrapped, master_key_id)
        select k.key_id, k.wrapped, k.master_key_id
        from unnest(key_ids, wrapped_keys, key_masters, key_of)
            as k (key_id, wrapped, master_key_id, command)
        where outcomes[k.command] = 'written'
    )
    select array_agg(a.append_id order by e.nr) into append_ids
    from unnest(streams, versions) with ordinality as e (stream, version, nr)
    left join appended as a on a.originator_id = e.stream and a.originator_version = e.version;
end
$$;
revoke execute on function ledger.write from public;
grant execute on function ledger.write to claim_ledger_of;
