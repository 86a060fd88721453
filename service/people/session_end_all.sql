-- All sessions of one person end.
update ledger.sessions set ended_at = now() where address_hash = $1 and ended_at is null
