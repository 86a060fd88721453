-- name: by_token
-- The link with this token hash, and whether it has expired by the database's clock.
select
    link_id, stream_id, token_hash, partner_id, partner_user_id, state, entity_id, issued_at,
    expires_at, expires_at <= clock_timestamp() as expired
from ledger.connect_links
where token_hash = $1 and expires_at is not null

-- name: of_partner
-- One link of a partner's, with what became of it. Not who approved: an entity id is its customer's
-- to pass on.
select
    stream_id,
    link_id, partner_user_id, issued_at, expires_at,
    case when state = 'issued' and expires_at <= clock_timestamp() then 'expired' else state end
        as state
from ledger.connect_links
where link_id = $2 and partner_id = $1

-- name: page_of_partner
-- A page of a partner's links, newest first, from before one on (null: from the newest on), with
-- what became of each.
select
    link_id, partner_user_id, issued_at, expires_at,
    case when state = 'issued' and expires_at <= clock_timestamp() then 'expired' else state end
        as state
from ledger.connect_links
where
    partner_id = $1
    and (issued_at, link_id) < (coalesce($2::timestamptz, 'infinity'), coalesce($3::text, ''))
order by issued_at desc, link_id desc
limit $4

-- name: page_of_partner_oldest
-- The same, oldest first, from after one on.
select
    link_id, partner_user_id, issued_at, expires_at,
    case when state = 'issued' and expires_at <= clock_timestamp() then 'expired' else state end
        as state
from ledger.connect_links
where
    partner_id = $1
    and (issued_at, link_id) > (coalesce($2::timestamptz, '-infinity'), coalesce($3::text, ''))
order by issued_at, link_id
limit $4

-- name: page_of_partner_user
-- The same, newest first, of the links for one of the partner's users.
select
    link_id, partner_user_id, issued_at, expires_at,
    case when state = 'issued' and expires_at <= clock_timestamp() then 'expired' else state end
        as state
from ledger.connect_links
where
    partner_id = $1 and partner_user_id = $5
    and (issued_at, link_id) < (coalesce($2::timestamptz, 'infinity'), coalesce($3::text, ''))
order by issued_at desc, link_id desc
limit $4

-- name: page_of_partner_user_oldest
-- The same, oldest first.
select
    link_id, partner_user_id, issued_at, expires_at,
    case when state = 'issued' and expires_at <= clock_timestamp() then 'expired' else state end
        as state
from ledger.connect_links
where
    partner_id = $1 and partner_user_id = $5
    and (issued_at, link_id) > (coalesce($2::timestamptz, '-infinity'), coalesce($3::text, ''))
order by issued_at, link_id
limit $4

-- name: settle
-- A link was redeemed or declined.
update ledger.connect_links as l set state = settled.state, entity_id = settled.entity_id
from unnest($1::text[], $2::text[], $3::text[]) as settled (link_id, state, entity_id)
where l.link_id = settled.link_id
