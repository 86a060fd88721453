-- name: context
-- What creating claims decides on, a row a command in the order asked: the entity and the partner's
-- connection to it, and the claim that this natural key already made, with the key it is sealed
-- under. One round trip for a whole batch, without a lock.
select
    e.entity_id, e.name, e.established, c.version, c.connected_at, c.disconnected_at,
    made.state as made, k.key_id, k.wrapped, k.master_key_id
from unnest($1::text[], $2::text[], $3::uuid[])
    with ordinality as asked (partner_id, entity_id, stream_id, nr)
left join ledger.entities as e on e.entity_id = asked.entity_id
left join ledger.connections as c
    on c.entity_id = asked.entity_id and c.partner_id = asked.partner_id
left join ledger.events as made
    on made.originator_id = asked.stream_id and made.originator_version = 1
left join ledger.data_keys as k on k.key_id = asked.stream_id
order by asked.nr
