-- The rows that are live now, and those that are kept, brought up to a position.
insert into ledger.read_models (
    name, version, rebuilt_at, previous_version, previous_rebuilt_at, previous_position
)
values ($1, $2, $3, $4, $5, $6)
on conflict (name) do update
set
    version = excluded.version,
    rebuilt_at = excluded.rebuilt_at,
    previous_version = excluded.previous_version,
    previous_rebuilt_at = excluded.previous_rebuilt_at,
    previous_position = excluded.previous_position
