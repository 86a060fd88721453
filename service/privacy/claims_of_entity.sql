-- The claims of an entity, oldest first: subjects of their own.
select
    l.claim_id, l.stream_id, l.stage,
    exists(
        select from ledger.events as e
        where e.originator_id = l.stream_id and e.topic = 'PersonalDataErased'
    ) as erased
from ledger.connections as c
join ledger.claim_list as l on l.partner_id = c.partner_id and l.entity_id = c.entity_id
where c.entity_id = $1
order by l.append_id
