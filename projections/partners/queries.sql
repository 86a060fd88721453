-- name: last_events
-- The last event of each stream asked for, a row a request in the order asked; null where it has none.
-- One read, however many requests come at once. Each is looked up by itself, so that a plan that was
-- made for empty tables reads no whole one later. The mark tells the event from another that had its
-- append_id before the database was set back.
select e.append_id, e.mark
from unnest($1::uuid[]) with ordinality as asked (stream_id, nr)
left join lateral (
    select l.append_id, coalesce(l.mac, l.state) as mark
    from ledger.events as l
    where l.originator_id = asked.stream_id
    order by l.originator_version desc limit 1
) as e on true
order by asked.nr

-- name: list_members
-- Who belongs to a partner's team, in the order in which they were added.
select member_id, added_at
from ledger.members
where partner_id = $1 and removed_at is null
order by added_at, member_id

-- name: list_partners
-- Every partner, or the one that is asked for, oldest first.
select partner_id, name, email, status, return_link, suppress_email, applied_at
from ledger.partners
where $1::text is null or partner_id = $1
order by partner_id

-- name: member
-- A partner as one member of its team sees it; no row for anybody else.
select
    m.member_id, p.partner_id, p.name, p.status, p.return_link, p.suppress_email,
    p.sandbox_epoch, p.applied_at
from ledger.members as m
join ledger.partners as p using (partner_id)
where m.partner_id = $1 and m.address_hash = $2 and m.removed_at is null

-- name: moments_of_keys
-- When each of these keys was issued, revoked and last used, in the order asked; null where that is
-- not known.
select asked.key_id, k.issued_at, k.revoked_at, u.used_at
from unnest($1::text[]) with ordinality as asked (key_id, nr)
left join lateral (
    select l.issued_at, l.revoked_at from ledger.api_keys as l
    where l.key_id = asked.key_id offset 0
) as k on true
left join lateral (
    select l.used_at from ledger.key_uses as l where l.key_id = asked.key_id offset 0
) as u on true
order by asked.nr

-- name: partners_of_address
-- The partners whose team this person belongs to, $2 at most: first those that are approved, or for
-- which they applied themselves (`is_own`), then those to which others added them; oldest first.
select
    p.partner_id, p.name, p.status, p.applied_at,
    p.status = 'approved' or m.added_at = p.applied_at as is_own
from ledger.members as m
join ledger.partners as p using (partner_id)
where m.address_hash = $1 and m.removed_at is null
order by is_own desc, p.partner_id
limit $2

-- name: rebind_key
-- Keys whose hashes cover their whole tokens from now on. That is so once, so no two are one key's.
update ledger.api_keys as k set secret_hash = bound.secret_hash, hash_version = bound.hash_version
from unnest($1::text[], $2::bytea[], $3::smallint[]) as bound (key_id, secret_hash, hash_version)
where k.key_id = bound.key_id

-- name: remove_member
-- People were removed from partners' teams.
update ledger.members as m set removed_at = one.at
from unnest($1::text[], $2::timestamptz[]) as one (member_id, at)
where m.member_id = one.member_id

-- name: reset_sandbox
-- Sandboxes began anew. Of several resets of one the last counts.
update ledger.partners as p set sandbox_epoch = anew.epoch, sandbox_reset_at = anew.at
from (
    select distinct on (partner_id) partner_id, epoch, at
    from unnest($1::text[], $2::int[], $3::timestamptz[])
        with ordinality as one (partner_id, epoch, at, nr)
    order by partner_id, nr desc
) as anew
where p.partner_id = anew.partner_id

-- name: revoke_key
-- Keys were revoked, at once or from a moment on. Of several ends the earliest holds; that one
-- came at once is kept, so that no clock can put it off.
update ledger.api_keys as k
set
    revoked_at = least(k.revoked_at, revoked.at),
    revoked_later = revoked.later and (k.revoked_at is null or k.revoked_later)
from (
    select key_id, min(at) as at, bool_and(later) as later
    from unnest($1::text[], $2::timestamptz[], $3::boolean[]) as one (key_id, at, later)
    group by key_id
) as revoked
where k.key_id = revoked.key_id

-- name: sandbox
-- Which epoch a partner's sandbox is in, and since when; null: since the partner was approved.
select sandbox_epoch, sandbox_reset_at from ledger.partners where partner_id = $1

-- name: set_settings
-- Partners' settings as they are from now on. Of several changes of one's the last counts.
update ledger.partners as p
set return_link = changed.return_link, suppress_email = changed.suppress_email
from (
    select distinct on (partner_id) partner_id, return_link, suppress_email
    from unnest($1::text[], $2::boolean[], $3::boolean[])
        with ordinality as one (partner_id, return_link, suppress_email, nr)
    order by partner_id, nr desc
) as changed
where p.partner_id = changed.partner_id

-- name: set_status
-- Partners were approved, declined or revoked. Of several facts about one the last counts.
update ledger.partners as p set status = changed.status
from (
    select distinct on (partner_id) partner_id, status
    from unnest($1::text[], $2::text[]) with ordinality as one (partner_id, status, nr)
    order by partner_id, nr desc
) as changed
where p.partner_id = changed.partner_id
