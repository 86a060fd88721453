-- Forgets counts of minutes before a moment, a bounded number at a time; answers how many.
with gone as (
    delete from ledger.request_counts as c using (
        select old.*
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
select count(*) as forgotten from gone
