-- An entity disconnected a partner.
update ledger.connections as c set version = gone.version, disconnected_at = gone.at
from unnest($1::text[], $2::text[], $3::bigint[], $4::timestamptz[])
    as gone (partner_id, entity_id, version, at)
where c.partner_id = gone.partner_id and c.entity_id = gone.entity_id
