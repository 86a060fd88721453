-- Removes the rows of read models that set aside events made, where their streams are left without any:
-- nothing else ever would, and they are in the way of who does the same again. An event names its row in
-- the clear; that the row is of its stream keeps a forged one from naming another's. A connection's row
-- does not name its stream: it stays, and is replaced when the connection begins again.
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
        where s.append_id = any(append_ids) and s.topic in (
            'ClaimCreated', 'DocumentsAttached', 'OnboardingStarted', 'ConnectLinkIssued',
            'EntityRegistered'
        )
        and not exists(select from ledger.events as e where e.originator_id = s.originator_id)
        order by s.originator_version desc  -- documents are their claim's while its row is there
    loop
        case one.topic
            when 'DocumentsAttached' then
                delete from ledger.claim_documents as d using ledger.claim_list as l
                where d.document_id in (
                    select ids.id[1] from regexp_matches(one.said, '"document_id":"(\w+)"', 'g') as ids (id)
                )
                and l.claim_id = d.claim_id and l.stream_id = one.stream;
            when 'ClaimCreated' then
                delete from ledger.claim_list as l
                where l.claim_id = substring(one.said from '"claim_id":"(\w+)"')
                and l.stream_id = one.stream;
            when 'OnboardingStarted' then
                delete from ledger.onboardings as o where o.stream_id = one.stream;
            when 'ConnectLinkIssued' then
                delete from ledger.connect_links as k
                where k.link_id = substring(one.said from '"link_id":"(\w+)"')
                and k.stream_id = one.stream;
            when 'EntityRegistered' then
                delete from ledger.entities as n
                where n.entity_id = substring(one.said from '"entity_id":"(\w+)"')
                and n.stream_id = one.stream;
        end case;
    end loop;
end
$$;
revoke execute on function ledger.drop_rows from public;
