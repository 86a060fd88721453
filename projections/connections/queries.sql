-- name: address
-- The keyed hash of the address by which a business's person signs in.
select email_hash from ledger.entities where entity_id = $1

-- name: choose_stage_mails
-- People chose whether to be told of stages. Of several choices for one business the last counts.
update ledger.entities as e set stage_mails = chosen.wanted
from (
    select distinct on (entity_id) entity_id, wanted
    from unnest($1::text[], $2::boolean[]) with ordinality as one (entity_id, wanted, nr)
    order by entity_id, nr desc
) as chosen
where e.entity_id = chosen.entity_id

-- name: connect
-- An entity connected again. Of several times the last counts.
update ledger.connections as c
set version = again.version, connected_at = again.at, disconnected_at = null
from (
    select distinct on (partner_id, entity_id) partner_id, entity_id, version, at
    from unnest($1::text[], $2::text[], $3::bigint[], $4::timestamptz[])
        as one (partner_id, entity_id, version, at)
    order by partner_id, entity_id, version desc
) as again
where c.partner_id = again.partner_id and c.entity_id = again.entity_id

-- name: correct_entity
-- People corrected what was said of their businesses. Of several corrections the last counts.
update ledger.entities as e set name = last.name, company_number_hash = last.number
from (
    select distinct on (entity_id) entity_id, name, number
    from unnest($1::text[], $2::text[], $3::bytea[]) with ordinality as one (entity_id, name, number, nr)
    order by entity_id, nr desc
) as last
where e.entity_id = last.entity_id

-- name: disconnect
-- An entity disconnected a partner.
update ledger.connections as c set version = gone.version, disconnected_at = gone.at
from unnest($1::text[], $2::text[], $3::bigint[], $4::timestamptz[])
    as gone (partner_id, entity_id, version, at)
where c.partner_id = gone.partner_id and c.entity_id = gone.entity_id

-- name: entities_of
-- The businesses of one email address that use the service, by name.
select entity_id, name, stage_mails from ledger.entities
where established and email_hash = $1
order by name, entity_id

-- name: entities_asked
-- The businesses of one email address, as `entities_of`, and since when each is connected to a
-- partner; null where it is not.
select
    e.entity_id, e.name, case when c.disconnected_at is null then c.connected_at end as connected_at
from ledger.entities as e
left join ledger.connections as c on c.entity_id = e.entity_id and c.partner_id = $2
where e.established and e.email_hash = $1
order by e.name, e.entity_id

-- name: entity_connections
-- Everyone an entity is or was connected to.
select partner_id, version, connected_at, disconnected_at
from ledger.connections
where entity_id = $1
order by partner_id

-- name: erase_entity
-- A business's data was erased: nothing in its row names it any more, and nothing finds it.
update ledger.entities as e
set name = gone.marker, email_hash = null, company_number_hash = null
from unnest($1::text[], $2::text[]) as gone (entity_id, marker)
where e.entity_id = gone.entity_id

-- name: establish
-- A business finished its onboarding.
update ledger.entities set established = true where entity_id = any($1::text[])

-- name: established
-- Does an established business have this email address or this company number?
select exists(
    select from ledger.entities where established and email_hash = $1::bytea
    union all
    select from ledger.entities where established and company_number_hash = $2::bytea
) as taken

-- name: state
-- An entity, and the last event of a partner's connection to it ($1), by which access is decided, not by
-- a row that anybody may have written; no row for an unknown entity. Every entity has the hash of an
-- address until it is erased; a name may be any text, the marker of an erasure too. With the position of
-- an event whose MAC is below $3, by which it counts (`Binding.retired`).
select
    e.entity_id, e.name, e.established, e.email_hash is null as erased,
    c.append_id as connection_id, c.originator_version as version, c.topic, c.state, c.mac,
    case
        when coalesce(c.mac, '') < $3
            then (select l.position from ledger.log as l where l.append_id = c.append_id)
    end as connection_position
from ledger.entities as e
left join lateral (
    select l.append_id, l.originator_version, l.topic, l.state, l.mac
    from ledger.events as l
    where l.originator_id = $1
    order by l.originator_version desc limit 1
) as c on true
where e.entity_id = $2
