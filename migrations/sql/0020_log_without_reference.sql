-- For each event that is numbered, the log's reference looked its row up again and locked it, which
-- writes that row and its part of the write-ahead log: a quarter of what numbering costs. Only the
-- sequencer writes the log, from rows that it reads in the same statement, and `audit verify` finds a
-- position without an event.
alter table ledger.log drop constraint log_append_id_fkey;

-- The reference also kept what was being numbered from being set aside at that moment. Now the head
-- does, which whoever numbers holds until the numbers have committed: a snapshot from before them is
-- refused, because they change the head. Otherwise the function of revision 0015; what it says there
-- holds here.
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
