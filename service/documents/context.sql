-- What checking documents decides on, before the claim's transaction: the entity and the partner's
-- connection, whether the claim exists, and which of the paths were minted for it. One round trip.
select
    e.entity_id, e.name, e.established, c.version, c.connected_at, c.disconnected_at,
    exists(
        select from ledger.events where originator_id = $3 and originator_version = 1
    ) as made,
    array(
        select storage_path from ledger.uploads
        where storage_path = any($4::text[]) and claim_stream = $3 and swept_at is null
    ) as minted
from (values (1)) as one (nr)
left join ledger.entities as e on e.entity_id = $2
left join ledger.connections as c on c.entity_id = $2 and c.partner_id = $1
