-- The connections, by entity and partner. Those of a claim are its entity's with its partner.
select c.entity_id, c.partner_id, c.connected_at, c.disconnected_at
from ledger.connections as c
where
    ($1::text is null or exists(
        select from ledger.claim_list as l
        where l.claim_id = $1 and l.entity_id = c.entity_id and l.partner_id = c.partner_id
    ))
    and ($2::text is null or c.entity_id = $2)
    and ($3::text is null or c.partner_id = $3)
order by c.entity_id, c.partner_id
