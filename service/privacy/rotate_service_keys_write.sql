-- The service's own secrets, wrapped anew.
update ledger.service_keys as k set wrapped = anew.wrapped, master_key_id = $3
from unnest($1::text[], $2::bytea[]) as anew (name, wrapped)
where k.name = anew.name
