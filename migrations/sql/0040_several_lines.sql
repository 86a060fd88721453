-- A login can store a line under any key, for ever. The key's own comes later, and has to be kept, too:
-- readers verify lines, and take the first that holds.
alter table ledger.checkpoint_signatures drop constraint checkpoint_signatures_pkey;
