-- When a partner's sandbox began anew; null: never.
alter table ledger.partners add column sandbox_reset_at timestamptz;
