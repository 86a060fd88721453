-- Rows that the service never removes: read models, the mail that was sent and is to be sent, the places
-- of subscribers. Rebuilds work as the owner. So whoever got hold of a login can make none of them vanish.
revoke delete on ledger.subscriptions, ledger.read_models from claim_ledger_of;
revoke delete, truncate on ledger.activity from claim_ledger_of;
