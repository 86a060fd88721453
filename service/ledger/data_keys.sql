-- The data keys that still exist among those asked for.
select key_id, wrapped, master_key_id from ledger.data_keys where key_id = any($1::uuid[])
