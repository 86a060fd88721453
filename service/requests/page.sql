-- A page of a partner's calls, newest first, from before a call on (null: from the newest on).
select request_id, key_id, at, method, route, status, code, duration_ms
from ledger.requests
where
    partner_id = $1
    and (at, request_id) < (coalesce($2::timestamptz, 'infinity'), coalesce($3::text, ''))
order by at desc, request_id desc
limit $4
