-- name: context
-- What starting an onboarding decides on: the database's clock, by which links expire; whether a business
-- with this address or company number uses the service; and the onboarding that this natural key
-- already made, with its entity, the partner's connection to it, and the key that both are sealed
-- under, unless that came back after an erasure. One round trip, without a lock.
select
    clock_timestamp() as now,
    exists(
        select from ledger.entities where established and email_hash = $3::bytea
        union all
        select from ledger.entities where established and company_number_hash = $4::bytea
    ) as taken,
    made.append_id as made_id, made.state as made, made.mac as made_mac,
    case
        when coalesce(made.mac, '') < $5
            then (select l.position from ledger.log as l where l.append_id = made.append_id)
    end as made_position,
    c.disconnected_at, k.key_id, k.wrapped, k.master_key_id
from (values ($1::uuid)) as asked (stream_id)
left join ledger.events as made
    on made.originator_id = asked.stream_id and made.originator_version = 1
left join ledger.onboardings as o on o.stream_id = asked.stream_id
left join ledger.entities as e on e.entity_id = o.entity_id
left join ledger.connections as c on c.entity_id = o.entity_id and c.partner_id = $2
left join ledger.data_keys as k
    on
        k.key_id = e.stream_id
        and not exists(
            select from ledger.events as erasure
            where
                erasure.originator_id = e.stream_id and erasure.topic = 'PersonalDataErased'
            offset 0
        )
