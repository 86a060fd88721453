-- Keys were used; a note that comes late turns no clock back.
insert into ledger.key_uses as k (key_id, used_at)
select * from unnest($1::text[], $2::timestamptz[]) as one (key_id, used_at) order by key_id
on conflict (key_id) do update set used_at = greatest(k.used_at, excluded.used_at)
