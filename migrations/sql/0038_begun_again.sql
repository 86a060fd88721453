-- Otherwise the function of revision 0020; what it says there holds here.
create or replace function ledger.set_aside_events(append_ids bigint[]) returns int
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
    moved bigint[];
    gone bigint[];
begin
    perform from ledger.head as h where h.id = 1 for update;

    with firsts as (
        select e.originator_id, min(e.originator_version) as version
        from ledger.events as e
        where e.append_id = any(append_ids)
        group by 1
    ), kept as (
        insert into ledger.set_aside (
            append_id, originator_id, originator_version, topic, state, mac, reason
        )
        select
            e.append_id, e.originator_id, e.originator_version, e.topic, e.state, e.mac,
            case when e.append_id = any(append_ids) then 'mac' else 'follows' end
        from firsts as f
        join ledger.events as e
            on e.originator_id = f.originator_id and e.originator_version >= f.version
        where not exists(select from ledger.log as l where l.append_id = e.append_id)
        order by e.append_id
        returning append_id
    )
    select coalesce(array_agg(k.append_id), '{}') into moved from kept as k;

    perform set_config('claim_ledger.sets_aside', 'on', true);
    delete from ledger.events where append_id = any(moved);
    perform set_config('claim_ledger.sets_aside', '', true);
    delete from ledger.pending where append_id = any(moved);
    perform ledger.drop_rows(moved);

    with removed as (
        delete from ledger.pending as p
        where p.append_id = any(append_ids) and p.append_id <> all(moved)
        and not exists(select from ledger.events as e where e.append_id = p.append_id)
        returning p.append_id
    ), noted as (
        insert into ledger.set_aside (append_id, reason) select append_id, 'gone' from removed
        returning append_id
    )
    select coalesce(array_agg(n.append_id), '{}') into gone from noted as n;
    return cardinality(moved) + cardinality(gone);
end
$$;

-- A stream without events that has a data key began with an event that was set aside: the next one with
-- which it begins brings a key of its own, which takes that one's place. The box of the event that was
-- set aside is opened by nobody from then on, and it is not taken back. Where a stream has events, its
-- key stays. An id that partners see is kept for good, and may follow from a reference: it is there
-- already where its stream has lost what was done under that reference, and does it again. Otherwise the
-- function of revision 0015; what it says there holds here.
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
        -- As of the statement's start: what it appends is not there yet.
        where not exists(select from ledger.events as e where e.originator_id = data_keys.key_id)
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
