-- What the ledgers' logins are held to: run by the owner after `claim-ledger migrate`, as often as one
-- likes. deploy/runbook.md, "Connections", has where the figures come from. Behind a transaction
-- pooler, which cannot pass settings on, the service has no limits but these.

alter role claim_ledger_accounts connection limit 62;
alter role claim_ledger_live connection limit 62;
alter role claim_ledger_test connection limit 62;

alter role claim_ledger_accounts set lock_timeout = '900ms';
alter role claim_ledger_accounts set statement_timeout = '1200ms';
alter role claim_ledger_accounts set idle_in_transaction_session_timeout = '10000ms';
alter role claim_ledger_accounts set client_connection_check_interval = '1s';
alter role claim_ledger_accounts set enable_seqscan = off;
alter role claim_ledger_accounts set jit = off;
alter role claim_ledger_accounts set search_path = pg_catalog, pg_temp;
alter role claim_ledger_accounts set row_security = off;
alter role claim_ledger_accounts set default_transaction_isolation = 'read committed';
alter role claim_ledger_accounts set synchronous_commit = on;
alter role claim_ledger_accounts set standard_conforming_strings = on;
alter role claim_ledger_accounts set transform_null_equals = off;
alter role claim_ledger_accounts set quote_all_identifiers = off;

alter role claim_ledger_live set lock_timeout = '900ms';
alter role claim_ledger_live set statement_timeout = '1200ms';
alter role claim_ledger_live set idle_in_transaction_session_timeout = '10000ms';
alter role claim_ledger_live set client_connection_check_interval = '1s';
alter role claim_ledger_live set enable_seqscan = off;
alter role claim_ledger_live set jit = off;
alter role claim_ledger_live set search_path = pg_catalog, pg_temp;
alter role claim_ledger_live set row_security = off;
alter role claim_ledger_live set default_transaction_isolation = 'read committed';
alter role claim_ledger_live set synchronous_commit = on;
alter role claim_ledger_live set standard_conforming_strings = on;
alter role claim_ledger_live set transform_null_equals = off;
alter role claim_ledger_live set quote_all_identifiers = off;

alter role claim_ledger_test set lock_timeout = '900ms';
alter role claim_ledger_test set statement_timeout = '1200ms';
alter role claim_ledger_test set idle_in_transaction_session_timeout = '10000ms';
alter role claim_ledger_test set client_connection_check_interval = '1s';
alter role claim_ledger_test set enable_seqscan = off;
alter role claim_ledger_test set jit = off;
alter role claim_ledger_test set search_path = pg_catalog, pg_temp;
alter role claim_ledger_test set row_security = off;
alter role claim_ledger_test set default_transaction_isolation = 'read committed';
alter role claim_ledger_test set synchronous_commit = on;
alter role claim_ledger_test set standard_conforming_strings = on;
alter role claim_ledger_test set transform_null_equals = off;
alter role claim_ledger_test set quote_all_identifiers = off;
