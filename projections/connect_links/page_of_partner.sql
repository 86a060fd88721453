-- A page of a partner's links, newest first, from before one on (null: from the newest on), with
-- what became of each. Not who approved: an entity id is its customer's to pass on.
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
