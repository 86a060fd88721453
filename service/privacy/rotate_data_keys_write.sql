-- Data keys, wrapped anew.
update ledger.data_keys as k set wrapped = anew.wrapped, master_key_id = $3
from unnest($1::uuid[], $2::bytea[]) as anew (key_id, wrapped)
where k.key_id = anew.key_id
