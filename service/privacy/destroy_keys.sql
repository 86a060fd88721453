-- What these keys sealed can be read by nobody from now on.
delete from ledger.data_keys where key_id = any($1::uuid[]) returning key_id
