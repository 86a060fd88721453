-- A sign-in link by its token's hash, by the database's clock.
select link_id, address_hash, wrapped, master_key_id, used_at, expires_at <= now() as expired
from ledger.sign_in_links where token_hash = $1
