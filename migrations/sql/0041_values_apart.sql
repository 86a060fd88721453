-- Where ANALYZE meets one value alone in a column, a plan for any value takes a condition on it to hold for
-- every row, and reads all of them from an index without the column. A fixed number of values keeps the
-- index that has it the best. It counts from the next ANALYZE on.
--
-- Citus refuses such options where a ledger has a node of its own, and needs none: it plans for the values
-- that it is given. There, the coordinator's own tables get them.
set local citus.enable_ddl_propagation = off;
alter table ledger.claim_list
alter column entity_id set (n_distinct = 100),
alter column partner_user_id set (n_distinct = 100),
alter column stage set (n_distinct = 100);
alter table ledger.connect_links alter column partner_user_id set (n_distinct = 100);
alter table ledger.document_checks alter column partner_id set (n_distinct = 100);
alter table ledger.webhook_log alter column endpoint_id set (n_distinct = 100);
set local citus.enable_ddl_propagation = on;
