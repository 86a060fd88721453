-- Forgets calls from before a moment, a bounded number at a time; answers how many.
with gone as (
    delete from ledger.requests where request_id in (
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
    )
    returning 1
)
select count(*) as forgotten from gone
