-- A session ends.
update ledger.sessions set ended_at = now() where token_hash = $1 and ended_at is null
