-- Subjects that were erased.
insert into ledger.erasures (subject, position, at, reason)
select * from unnest($1::text[], $2::bigint[], $3::timestamptz[], $4::text[])
