-- An event is bound to the service that wrote it (decision 45): a MAC over what the writer knows of its
-- leaf's record. Null in what releases before this one wrote. Nothing is rewritten.
alter table ledger.events add column mac bytea;

-- What the MAC is of (docs/ledger-format.md): a digest that PostgreSQL can make where the rows are.
-- The ledger is not in it: each has a key of its own.
create function ledger.event_digest(
    originator_id uuid, originator_version bigint, topic text, state bytea
) returns bytea language sql immutable return sha256(convert_to(
    'claim-ledger event mac v1' || chr(10) || originator_id || chr(10) || originator_version || chr(10)
    || topic || chr(10) || encode(sha256(state), 'hex') || chr(10), 'UTF8'));

-- What was refused a number: the row as it was, and why. It is kept, and never numbered.
create table ledger.set_aside (
    id bigint generated always as identity primary key,
    append_id bigint not null,
    originator_id uuid,
    originator_version bigint,
    topic text collate "C",
    state bytea,
    mac bytea,
    reason text not null check (reason in ('mac', 'follows', 'gone')),
    set_aside_at timestamptz not null default clock_timestamp()
);
create index set_aside_by_age on ledger.set_aside (set_aside_at);
create index set_aside_by_event on ledger.set_aside (append_id);
create trigger append_only before update or delete or truncate on ledger.set_aside
for each statement execute function ledger.refuse_change();
alter table ledger.set_aside enable always trigger append_only;
grant select on ledger.set_aside to claim_ledger_of;

-- An event leaves `events` only where it has no number, and only as it stands in `set_aside`. The
-- statement's trigger still refuses every other DELETE, one that matches no row included.
create or replace function ledger.refuse_change() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and tg_table_name = 'events'
        and current_setting('claim_ledger.sets_aside', true) = 'on'
    then
        return null;
    end if;
    raise exception '% on %.% is refused: the ledger is append-only',
        tg_op, tg_table_schema, tg_table_name using errcode = 'insufficient_privilege';
end
$$;
create function ledger.refuse_loss() returns trigger language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
    if exists(select from ledger.log as l where l.append_id = old.append_id) or not exists(
        select from ledger.set_aside as s
        where
            s.append_id = old.append_id
            and s.originator_id = old.originator_id
            and s.originator_version = old.originator_version
            and s.topic = old.topic
            and s.state = old.state
            and s.mac is not distinct from old.mac
    ) then
        raise exception 'DELETE on %.% is refused: the ledger is append-only',
            tg_table_schema, tg_table_name using errcode = 'insufficient_privilege';
    end if;
    return old;
end
$$;
create trigger kept_aside before delete on ledger.events
for each row execute function ledger.refuse_loss();
alter table ledger.events enable always trigger kept_aside;

-- Sets aside what was queued and must not be numbered: these events, and what follows them in their
-- streams, if anything was decided on them; or the queue's row alone where there is no event. As the
-- owner, because nobody else may remove an event. Returns how many were set aside.
create function ledger.set_aside_events(append_ids bigint[]) returns int
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
    moved bigint[];
    gone bigint[];
begin
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
revoke execute on function ledger.set_aside_events from public;
grant execute on function ledger.set_aside_events to claim_ledger_of;

-- The log is written by the function alone, as the owner: whoever has the role can neither choose an
-- `append_id`, nor leave out the queue, nor queue what is no event. The release before, which may still
-- run beside this one, goes on calling the function without MACs.
revoke insert on ledger.events, ledger.pending from claim_ledger_of;
alter function ledger.write(
    int, bigint[], uuid[], bigint[], boolean[], int[], text[], int[],
    uuid[], bigint[], text[], bytea[], int[], text[], int[], uuid[], bytea[], text[], int[]
) security definer set search_path = pg_catalog, pg_temp;

-- The function of revision 0009 with a MAC beside each state; what it says there holds here.
create function ledger.write(
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
revoke execute on function ledger.write(
    int, bigint[], uuid[], bigint[], boolean[], int[], text[], int[],
    uuid[], bigint[], text[], bytea[], bytea[], int[], text[], int[], uuid[], bytea[], text[], int[]
) from public;
grant execute on function ledger.write(
    int, bigint[], uuid[], bigint[], boolean[], int[], text[], int[],
    uuid[], bigint[], text[], bytea[], bytea[], int[], text[], int[], uuid[], bytea[], text[], int[]
) to claim_ledger_of;
