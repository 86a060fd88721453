-- Removes the rows of read models that set aside events made, where their streams are left without any:
-- nothing else ever would, and they are in the way of who does the same again. An event names its row in
-- the clear; that the row is of its stream keeps a forged one from naming another's.
create function ledger.drop_rows(append_ids bigint[]) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
    one record;
begin
    for one in
        select s.originator_id as stream, s.topic, encode(s.state, 'escape') as said
        from ledger.set_aside as s
        where s.append_id = any(append_ids) and s.topic in ('PartnerApplied', 'StaffAdded')
        and not exists(select from ledger.events as e where e.originator_id = s.originator_id)
    loop
        delete from ledger.partners as p
        where p.partner_id = substring(one.said from '"partner_id":"(\w+)"') and p.stream_id = one.stream;
        delete from ledger.staff as t
        where t.staff_id = substring(one.said from '"staff_id":"(\w+)"') and t.stream_id = one.stream;
    end loop;
end
$$;
revoke execute on function ledger.drop_rows from public;
