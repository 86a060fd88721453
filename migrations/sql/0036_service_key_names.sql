-- The same of the service's own secrets: one under another name is gone.
revoke update on ledger.service_keys from claim_ledger_of;
grant update (wrapped, master_key_id) on ledger.service_keys to claim_ledger_of;
