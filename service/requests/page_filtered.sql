-- The same as page.sql, of calls that a filter lets through; each part of it may be null. Counts tell
-- on which days there are any, from when to when, and in which minutes: so rare ones are found among
-- millions. A minute has one at least, but for the one in which the page before ended: one minute
-- more than there are rows on a page is enough.
select r.request_id, r.key_id, r.at, r.method, r.route, r.status, r.code, r.duration_ms
from (
    select m.minute
    from (
        select day, date_trunc('minute', min(first_at)) as first_at, max(last_at) as last_at
        from ledger.request_days
        where
            partner_id = $1
            and day <= coalesce(($2::timestamptz at time zone 'UTC')::date, 'infinity')
            and ($5::text is null or code = $5)
            and ($6::text is null or key_id = $6)
            and ($7::text is null or method || ' ' || route = $7)
            and ($8::smallint is null or status / 100 = $8)
        group by day
        order by day desc
    ) as d
    cross join lateral (
        select distinct c.minute
        from ledger.request_counts as c
        where
            c.partner_id = $1
            and c.minute >= d.first_at and c.minute <= d.last_at
            and c.minute <= coalesce($2::timestamptz, 'infinity')
            and ($5::text is null or c.code = $5)
            and ($6::text is null or c.key_id = $6)
            and ($7::text is null or c.method || ' ' || c.route = $7)
            and ($8::smallint is null or c.status / 100 = $8)
        order by c.minute desc
        limit $4 + 1
    ) as m
    order by d.day desc, m.minute desc
    limit $4 + 1
) as busy
cross join lateral (
    select *
    from ledger.requests as q
    where
        q.partner_id = $1
        and q.at >= busy.minute and q.at < busy.minute + interval '1 minute'
        and (q.at, q.request_id) < (coalesce($2::timestamptz, 'infinity'), coalesce($3::text, ''))
        and ($5::text is null or q.code = $5)
        and ($6::text is null or q.key_id = $6)
        and ($7::text is null or q.method || ' ' || q.route = $7)
        and ($8::smallint is null or q.status / 100 = $8)
    order by q.at desc, q.request_id desc
    limit $4
) as r
order by r.at desc, r.request_id desc
limit $4
