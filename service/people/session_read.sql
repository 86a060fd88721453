-- A session that holds, by its token's hash.
select session_id, address_hash, wrapped, master_key_id from ledger.sessions
where token_hash = $1 and ended_at is null and expires_at > now()
