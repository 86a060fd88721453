-- name: add_entries
-- Inserts calls and counts them by the minute, the hour and the day, in one round trip. A batch that is
-- written twice, because its response was lost, counts once.
with noted as (
    insert into ledger.requests (
        request_id, partner_id, key_id, at, method, route, status, code, duration_ms, outcome
    )
    select * from unnest(
        $1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::text[],
        $6::text[], $7::smallint[], $8::text[], $9::real[], $10::text[]
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
), hours as (
    insert into ledger.request_hours as h (
        partner_id, hour, method, route, requests, limited, refused
    )
    select
        partner_id, date_trunc('hour', at, 'UTC'), method, route, count(*),
        count(*) filter (where status = 429),
        count(*) filter (where status >= 400 and status <> 429)
    from noted
    group by 1, 2, 3, 4
    order by 1, 2, 3, 4
    on conflict (partner_id, hour, method, route) do update set
        requests = h.requests + excluded.requests,
        limited = h.limited + excluded.limited,
        refused = h.refused + excluded.refused
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

-- name: delete_days
-- Deletes the counts of days before a moment's, all of them: they are few. Returns how many.
with gone as (
    delete from ledger.request_days
    where day < ($1::timestamptz at time zone 'UTC')::date
    returning 1
)
select count(*) as deleted from gone

-- name: delete_hours
-- The same of hours.
with gone as (
    delete from ledger.request_hours
    where
        partner_id = any(array(
            select distinct partner_id from ledger.request_days
            where day <= ($1::timestamptz at time zone 'UTC')::date
        ))
        and hour < $1
    returning 1
)
select count(*) as deleted from gone

-- name: delete_minutes
-- Deletes counts of minutes before a moment, a bounded number at a time. Returns how many.
with gone as (
    delete from ledger.request_counts as c using (
        select
            old.partner_id, old.minute, old.status, old.code, old.method, old.route, old.key_id
        from (
            select distinct partner_id from ledger.request_days
            where day <= ($1::timestamptz at time zone 'UTC')::date
        ) as whose
        cross join lateral (
            select m.partner_id, m.minute, m.status, m.code, m.method, m.route, m.key_id
            from ledger.request_counts as m
            where m.partner_id = whose.partner_id and m.minute < $1
            limit $2
        ) as old
        limit $2
    ) as due
    where
        c.partner_id = due.partner_id and c.minute = due.minute and c.status = due.status
        and c.code = due.code and c.method = due.method and c.route = due.route
        and c.key_id = due.key_id
    returning 1
)
select count(*) as deleted from gone

-- name: delete_requests
-- Deletes calls from before a moment, a bounded number at a time. Returns how many.
with gone as (
    delete from ledger.requests where request_id = any(array(
        select old.request_id
        from (
            select distinct partner_id from ledger.request_days
            where day <= ($1::timestamptz at time zone 'UTC')::date
        ) as whose
        cross join lateral (
            select r.request_id from ledger.requests as r
            where r.partner_id = whose.partner_id and r.at < $1
            limit $2
        ) as old
        limit $2
    ))
    returning 1
)
select count(*) as deleted from gone

-- name: has_documents
-- Whether a claim of a partner has a document, of its first $2 and its last $2. Linked documents stay, so
-- the log need not be read.
select
    exists(
        select from (
            (
                select l.claim_id from ledger.claim_list as l
                where l.partner_id = $1 order by l.append_id limit $2
            )
            union all
            (
                select l.claim_id from ledger.claim_list as l
                where l.partner_id = $1 order by l.append_id desc limit $2
            )
        ) as c
        where exists(select from ledger.claim_documents as d where d.claim_id = c.claim_id offset 0)
    ) as found

-- name: looked_to
-- Down to which minute a page of calls that match a filter looks: as many counts ($8) lie between it and
-- the newest of them. No row where the page can look at all of them.
select c.minute
from (
    select min(first_at) as first_at, least(max(last_at), $2::timestamptz) as last_at
    from ledger.request_days
    where
        partner_id = $1
        and day <= coalesce(($2::timestamptz at time zone 'UTC')::date, 'infinity')
        and ($4::text is null or code = $4)
        and ($5::text is null or key_id = $5)
        and ($6::text is null or method || ' ' || route = $6)
        and ($7::smallint is null or status / 100 = $7)
) as d
cross join lateral (
    select one.minute
    from ledger.request_counts as one
    where
        one.partner_id = $1 and one.minute <= d.last_at
        and (one.minute, '') < (coalesce($2::timestamptz, 'infinity'), coalesce($3::text, ''))
    order by one.minute desc
    offset $8 limit 1
) as c
where c.minute > d.first_at

-- name: one
-- One call of a partner's.
select request_id, key_id, at, method, route, status, code, duration_ms, outcome
from ledger.requests where request_id = $1 and partner_id = $2

-- name: page
-- A page of a partner's calls, newest first, that precede a given call (null: from the newest on).
select request_id, key_id, at, method, route, status, code, duration_ms
from ledger.requests
where
    partner_id = $1
    and (at, request_id) < (coalesce($2::timestamptz, 'infinity'), coalesce($3::text, ''))
order by at desc, request_id desc
limit $4

-- name: page_filtered
-- The same as `page`, of calls that match a filter; each part of it may be null. The counts say on
-- which days there are any, from when to when, and in which minutes, so that rare calls are found
-- among millions. Every minute has at least one, except the one in which the previous page ended:
-- one minute more than there are rows on a page is enough. Minutes before a given one ($9, which may
-- be null) are not looked at.
select r.request_id, r.key_id, r.at, r.method, r.route, r.status, r.code, r.duration_ms
from (
    select m.minute
    from (
        select day, date_trunc('minute', min(first_at)) as first_at, max(last_at) as last_at
        from ledger.request_days
        where
            partner_id = $1
            and day <= coalesce(($2::timestamptz at time zone 'UTC')::date, 'infinity')
            and day >= coalesce(($9::timestamptz at time zone 'UTC')::date, '-infinity')
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
            and c.minute >= coalesce($9::timestamptz, '-infinity')
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
    select
        q.request_id, q.key_id, q.at, q.method, q.route, q.status, q.code, q.duration_ms
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

-- name: seen
-- What a partner called since a day, and how it ended: how many, when first, when last.
select
    method, route, status, code, sum(requests)::bigint as requests,
    min(first_at) as first_at, max(last_at) as last_at
from ledger.request_days
where partner_id = $1 and day >= $2
group by method, route, status, code
order by requests desc, method, route, status, code

-- name: set_key_uses
-- Sets when keys were last used; a late entry does not move it back.
insert into ledger.key_uses as k (key_id, used_at)
select * from unnest($1::text[], $2::timestamptz[]) as one (key_id, used_at) order by key_id
on conflict (key_id) do update set used_at = greatest(k.used_at, excluded.used_at)

-- name: usage
-- A partner's calls by the minute and by endpoint, from a minute on; slots without calls are left out.
select
    minute as slot, method, route, sum(requests)::bigint as requests,
    coalesce(sum(requests) filter (where status = 429), 0)::bigint as limited,
    coalesce(sum(requests) filter (where status >= 400 and status <> 429), 0)::bigint as refused
from ledger.request_counts
where partner_id = $1 and minute >= $2
group by 1, 2, 3 order by 1, 2, 3

-- name: usage_of_hours
-- The same by the hour (of UTC), from an hour on, read from the counts of hours.
select hour as slot, method, route, requests, limited, refused
from ledger.request_hours
where partner_id = $1 and hour >= $2
order by hour, method, route

-- name: usage_of_days
-- The same by the day, from a day on, read from the counts of days.
select
    day::timestamp at time zone 'UTC' as slot, method, route, sum(requests)::bigint as requests,
    coalesce(sum(requests) filter (where status = 429), 0)::bigint as limited,
    coalesce(sum(requests) filter (where status >= 400 and status <> 429), 0)::bigint as refused
from ledger.request_days
where partner_id = $1 and day >= $2
group by 1, 2, 3 order by 1, 2, 3
