-- Calls by the hour (of UTC) and by what became of them, without keys and codes: a partner has as many
-- counts of minutes as it has keys, and a page of a day read half a million.
create table ledger.request_hours (
    partner_id text collate "C" not null,
    hour timestamptz not null,
    method text collate "C" not null,
    route text collate "C" not null,
    requests bigint not null,
    limited bigint not null,
    refused bigint not null,
    primary key (partner_id, hour, method, route)
);
grant select, insert, update, delete on ledger.request_hours to claim_ledger_of;

-- Of the day before, by the counts of minutes. What processes of the release before note from now on is
-- missing: the page shows it by the minute, and by the day. It is counted apart from the insert: a
-- condition with `now()` in what an insert selects ends the server where Citus has the tables.
with counted as materialized (
    select
        partner_id, date_trunc('hour', minute, 'UTC'), method, route, sum(requests),
        coalesce(sum(requests) filter (where status = 429), 0),
        coalesce(sum(requests) filter (where status >= 400 and status <> 429), 0)
    from ledger.request_counts
    where
        partner_id in (select partner_id from ledger.request_days where day >= current_date - 2)
        and minute >= date_trunc('hour', now() - interval '1 day', 'UTC')
    group by 1, 2, 3, 4
)
insert into ledger.request_hours (
    partner_id, hour, method, route, requests, limited, refused
)
select * from counted;
