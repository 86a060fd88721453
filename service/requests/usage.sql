-- A partner's calls by the minute, from a minute on; minutes without one are left out.
select
    minute, sum(requests)::bigint as requests,
    coalesce(sum(requests) filter (where status = 429), 0)::bigint as limited,
    coalesce(sum(requests) filter (where status >= 400 and status <> 429), 0)::bigint as refused
from ledger.request_counts
where partner_id = $1 and minute >= $2
group by minute order by minute
