-- Whose document is checked: partners take turns. Empty in what an earlier release queued.
alter table ledger.document_checks add column partner_id text collate "C" not null default '';
