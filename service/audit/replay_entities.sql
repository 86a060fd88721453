-- The entities, oldest first: all, one, or those that a partner has or had to do with.
select e.entity_id, e.name, e.established, e.registered_at
from ledger.entities as e
where
    ($1::text is null or exists(
        select from ledger.claim_list as l where l.claim_id = $1 and l.entity_id = e.entity_id
    ))
    and ($2::text is null or e.entity_id = $2)
    and ($3::text is null or exists(
        select from ledger.connections as c where c.partner_id = $3 and c.entity_id = e.entity_id
        union all
        select from ledger.onboardings as o where o.partner_id = $3 and o.entity_id = e.entity_id
    ))
order by e.registered_at, e.entity_id
