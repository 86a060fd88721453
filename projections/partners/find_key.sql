-- Whose key this is.
select partner_id from ledger.api_keys where key_id = $1
