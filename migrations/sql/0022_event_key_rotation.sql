-- When an event key begins to sign: later than every process knows it, because whoever does not would
-- set aside what it signed. Those that are there sign.
alter table ledger.event_keys add column signs_from timestamptz not null default '-infinity';
