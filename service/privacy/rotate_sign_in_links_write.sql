-- Sign-in links, wrapped anew.
update ledger.sign_in_links as k set wrapped = anew.wrapped, master_key_id = $3
from unnest($1::text[], $2::bytea[]) as anew (name, wrapped)
where k.link_id = anew.name
