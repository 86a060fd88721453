-- The service's own secrets are wrapped anew when the master key changes.
grant update on ledger.service_keys to claim_ledger_of;
