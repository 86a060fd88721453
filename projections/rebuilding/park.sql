-- Puts events aside that the rebuilt rows lack.
insert into ledger.parked (read_model, position, stream_id, error, parked_at)
select $1, position, stream_id, error, clock_timestamp()
from unnest($2::bigint[], $3::uuid[], $4::text[]) as one (position, stream_id, error)
on conflict do nothing
