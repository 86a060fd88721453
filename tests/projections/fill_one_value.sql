-- Tables in which one value is all that ANALYZE meets, and three rows of another that come after it.
create temporary view seeds as
select
    n, case when n > 20000 then 'rare' else 'usual' end as value,
    timestamptz '2026-03-01 00:00 UTC' - n * interval '20 seconds' as at
from generate_series(1, 20003) as n;

create procedure pg_temp.fill(first int, last int) language sql as $$
    insert into live.claim_list
    select
        'clm_' || n, n, gen_random_uuid(), 'ptn_1', value, 'case-' || n, value, '[]', value, at
    from seeds where n between first and last;

    insert into live.connect_links
    select
        'lnk_' || n, gen_random_uuid(), sha256(n::text::bytea), 'ptn_1', 'issued', null, at,
        at + interval '1 hour', value
    from seeds where n between first and last;

    insert into live.webhook_log
    select value, at, n, 'clm_' || n, 'claim.created', 1, 200, 1, null
    from seeds where n between first and last;

    insert into live.document_checks (
        position, document_id, stream_id, claim_id, partner_id, storage_path, mime_type, size,
        generation, noted_at, next_attempt_at
    )
    select
        n, 'doc_' || n, gen_random_uuid(), 'clm_' || n, value, 'path/' || n, 'text/csv', 1, 1, at, at
    from seeds where n between first and last
$$;

insert into live.entities
select name, gen_random_uuid(), 'Business', null, null, true, now()
from unnest(array['usual', 'rare']) as name;
insert into live.connections
select 'ptn_1', name, 1, now(), null from unnest(array['usual', 'rare']) as name;
insert into live.webhook_queues (endpoint_id, partner_id, position)
select name, 'ptn_1', 0 from unnest(array['usual', 'rare']) as name;

call pg_temp.fill(1, 20000);
analyze;
call pg_temp.fill(20001, 20003);
