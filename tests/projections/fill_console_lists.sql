-- 40,000 rows of each list of the developer console, nine in ten of them one partner's; in five
-- columns of a call what a filter asks for, and one refusal in ten thousand; documents of other claims.
-- The first and the last call of each day are with a key of their own.
create temporary view seeds as
select
    n, 'ptn_' || case when n % 10 = 0 then 2 else 1 end as partner_id,
    timestamptz '2026-03-01 00:00 UTC' - n * interval '20 seconds' as at
from generate_series(1, 40000) as n;

insert into live.claim_list
select
    'clm_' || n, n, gen_random_uuid(), partner_id, 'ent_' || n % 1000, 'case-' || n, null, '[]',
    'triage', at
from seeds;

insert into live.claim_documents
select 'doc_' || n, 'clm_other_' || n, 'path/' || n, 'text/csv', 1, 1, 'crc' from seeds;

insert into live.connect_links
select
    'lnk_' || n, gen_random_uuid(), sha256(n::text::bytea), partner_id, 'issued', null, at,
    at + interval '1 hour', 'u'
from seeds;

insert into live.onboardings
select
    'onb_' || n, gen_random_uuid(), partner_id, 'u' || n, 'ent_' || n, null, null, 'started', at,
    null
from seeds;

insert into live.requests
select
    'req_' || n, partner_id,
    'key_' || case when n % 4320 in (1, 2, 4318, 4319) then 'rare' else (n % 3)::text end,
    at, 'POST', '/v1/claims',
    case when n % 10000 = 1 then 409 else 201 end,
    case when n % 10000 = 1 then 'claim_conflict' else '' end, 1
from seeds;

insert into live.request_counts
select
    partner_id, date_trunc('minute', at), status, code, method, route, key_id, count(*)
from live.requests
group by 1, 2, 3, 4, 5, 6, 7;

insert into live.request_days
select
    partner_id, (at at time zone 'UTC')::date, status, code, method, route, key_id, count(*),
    min(at), max(at)
from live.requests
group by 1, 2, 3, 4, 5, 6, 7;

insert into live.request_hours (partner_id, hour, method, route, requests, limited, refused)
select partner_id, date_trunc('hour', at, 'UTC'), method, route, count(*),
    count(*) filter (where status = 429),
    count(*) filter (where status >= 400 and status <> 429)
from live.requests group by 1, 2, 3, 4;
