-- What is known of a read model's rows; no row: never rebuilt.
select version, rebuilt_at, previous_version, previous_rebuilt_at, previous_position
from ledger.read_models
where name = $1
