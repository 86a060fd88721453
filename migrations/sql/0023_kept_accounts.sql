-- The same of the tables that the ledger of accounts alone has.
revoke delete, truncate on ledger.partners, ledger.api_keys, ledger.members, ledger.staff
from claim_ledger_of;
revoke delete on ledger.key_uses from claim_ledger_of;
