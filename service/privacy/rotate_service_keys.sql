-- The service's own secrets that an older master key wraps.
select name, wrapped, master_key_id
from ledger.service_keys
where master_key_id <> $1 and name > $2
order by name
limit $3
for update skip locked
