-- Everyone an entity is or was connected to.
select partner_id, connected_at, disconnected_at
from ledger.connections
where entity_id = $1
order by partner_id
