-- What the erasure of an entity has to keep still: its look-up hashes and its connections; and the
-- links that it redeemed, whose labels are about it.
select
    e.email_hash, e.company_number_hash,
    array(
        select partner_id from ledger.connections where entity_id = e.entity_id order by partner_id
    ) as partner_ids,
    array(
        select link_id from ledger.connect_links where entity_id = e.entity_id order by link_id
    ) as link_ids
from ledger.entities as e
where e.entity_id = $1
