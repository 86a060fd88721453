-- An entity, and a partner's connection to it; no row for an unknown entity.
select
    e.entity_id, e.name, e.established,
    c.version, c.connected_at, c.disconnected_at
from ledger.entities as e
left join ledger.connections as c on c.entity_id = e.entity_id and c.partner_id = $1
where e.entity_id = $2
