-- name: by_id
-- One onboarding.
select
    onboarding_id, stream_id, partner_id, partner_user_id, entity_id, magic_link_hash, expires_at,
    state, started_at, completed_at
from ledger.onboardings
where onboarding_id = $1

-- name: by_link
-- The onboarding whose magic link has this hash.
select
    onboarding_id, stream_id, partner_id, partner_user_id, entity_id, magic_link_hash, expires_at,
    state, started_at, completed_at
from ledger.onboardings
where magic_link_hash = $1

-- name: complete
-- The person finished.
update ledger.onboardings as o set state = 'completed', completed_at = done.at
from unnest($1::text[], $2::timestamptz[]) as done (onboarding_id, at)
where o.onboarding_id = done.onboarding_id

-- name: forget_link
-- A business's data was erased: its magic link is no credential any more.
update ledger.onboardings set magic_link_hash = null where entity_id = any($1::text[])

-- name: of_partner
-- Those of a partner's onboardings that have an id ($2) or one of these streams ($3), newest first,
-- with what `page_of_partner` has of each.
select
    o.onboarding_id, o.partner_user_id, o.entity_id, o.started_at, o.expires_at, o.completed_at,
    case
        when o.state = 'started' and o.expires_at <= clock_timestamp() then 'expired' else o.state
    end as state,
    c.connected_at, c.disconnected_at, m.state as mail_state
from ledger.onboardings as o
left join ledger.connections as c on c.partner_id = o.partner_id and c.entity_id = o.entity_id
left join lateral (
    select m.state from ledger.mail_outbox as m where m.message_id = o.onboarding_id offset 0
) as m on true
where o.partner_id = $1 and (o.onboarding_id = $2 or o.stream_id = any($3::uuid[]))
order by o.started_at desc, o.onboarding_id desc

-- name: page_of_partner
-- A page of a partner's onboardings, newest first, since a moment ($5, null: all), from before one on
-- (null: from the newest on), with what became of each, of its mail, and of the connection that it made.
select
    o.onboarding_id, o.partner_user_id, o.entity_id, o.started_at, o.expires_at, o.completed_at,
    case
        when o.state = 'started' and o.expires_at <= clock_timestamp() then 'expired' else o.state
    end as state,
    c.connected_at, c.disconnected_at, m.state as mail_state
from (
    select
        l.onboarding_id, l.partner_id, l.partner_user_id, l.entity_id, l.state, l.started_at,
        l.expires_at, l.completed_at
    from ledger.onboardings as l
    where
        l.partner_id = $1
        and (l.started_at, l.onboarding_id)
        < (coalesce($2::timestamptz, 'infinity'), coalesce($3::text, ''))
        and l.started_at >= coalesce($5::timestamptz, '-infinity')
    order by l.started_at desc, l.onboarding_id desc
    limit $4
) as o
left join ledger.connections as c on c.partner_id = o.partner_id and c.entity_id = o.entity_id
left join lateral (
    select m.state from ledger.mail_outbox as m where m.message_id = o.onboarding_id offset 0
) as m on true
order by o.started_at desc, o.onboarding_id desc
