-- Rows of activity.
insert into ledger.activity (subject, position, topic, at, actor, request_id)
select * from unnest(
    $1::text[], $2::bigint[], $3::text[], $4::timestamptz[], $5::text[], $6::text[]
)
