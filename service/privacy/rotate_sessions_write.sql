-- Sessions, wrapped anew.
update ledger.sessions as k set wrapped = anew.wrapped, master_key_id = $3
from unnest($1::text[], $2::bytea[]) as anew (name, wrapped)
where k.session_id = anew.name
