-- Forgets counts of minutes before a moment, a bounded number at a time; answers how many.
with gone as (
    delete from ledger.request_counts as c using (
        select partner_id, minute, status, code, method, route, key_id
        from ledger.request_counts where minute < $1 limit $2
    ) as old
    where
        c.partner_id = old.partner_id and c.minute = old.minute and c.status = old.status
        and c.code = old.code and c.method = old.method and c.route = old.route
        and c.key_id = old.key_id
    returning 1
)
select count(*) as forgotten from gone
