-- What a partner called since a day, and how it ended: how many, when first, when last.
select
    method, route, status, code, sum(requests)::bigint as requests,
    min(first_at) as first_at, max(last_at) as last_at
from ledger.request_days
where partner_id = $1 and day >= $2
group by method, route, status, code
order by requests desc, method, route, status, code
