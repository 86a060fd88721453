-- When an API key was last used; behind the key's own row, which is a read model of the log.
create table ledger.key_uses (
    key_id text collate "C" primary key,
    used_at timestamptz not null
);
grant select, insert, update, delete on ledger.key_uses to claim_ledger_of;
