-- Notes calls, and counts them by the minute and by the day: one round trip. A batch that is written
-- twice, because its answer was lost, counts once.
with noted as (
    insert into ledger.requests (
        request_id, partner_id, key_id, at, method, route, status, code, duration_ms
    )
    select * from unnest(
        $1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::text[],
        $6::text[], $7::smallint[], $8::text[], $9::real[]
    )
    on conflict do nothing
    returning partner_id, key_id, at, method, route, status, code
), minutes as (
    insert into ledger.request_counts as c (
        partner_id, minute, status, code, method, route, key_id, requests
    )
    select partner_id, date_trunc('minute', at), status, code, method, route, key_id, count(*)
    from noted
    group by 1, 2, 3, 4, 5, 6, 7
    order by 1, 2, 3, 4, 5, 6, 7
    on conflict (partner_id, minute, status, code, method, route, key_id)
    do update set requests = c.requests + excluded.requests
)
insert into ledger.request_days as d (
    partner_id, day, status, code, method, route, key_id, requests, first_at, last_at
)
select
    partner_id, (at at time zone 'UTC')::date, status, code, method, route, key_id,
    count(*), min(at), max(at)
from noted
group by 1, 2, 3, 4, 5, 6, 7
order by 1, 2, 3, 4, 5, 6, 7
on conflict (partner_id, day, status, code, method, route, key_id) do update set
    requests = d.requests + excluded.requests,
    first_at = least(d.first_at, excluded.first_at),
    last_at = greatest(d.last_at, excluded.last_at)
