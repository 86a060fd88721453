-- An entity connected, for the first time or again.
insert into ledger.connections (partner_id, entity_id, version, connected_at)
select * from unnest($1::text[], $2::text[], $3::bigint[], $4::timestamptz[])
on conflict (partner_id, entity_id) do update
set version = excluded.version, connected_at = excluded.connected_at, disconnected_at = null
