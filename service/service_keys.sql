-- The service's own secrets, wrapped.
select name, wrapped, master_key_id from ledger.service_keys
