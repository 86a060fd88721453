-- The keys that bind events to this service, wrapped by the master keys: the newest signs. A table of
-- their own, because the release before reads every row of `service_keys` and knows three of them.
-- `since_start`: no event of this installation is older than the key, so none is without a MAC. It is
-- part of what the wrapping is bound to: nobody can say so of another key.
create table ledger.event_keys (
    key_id int primary key check (key_id between 1 and 255),
    since_start boolean not null,
    wrapped bytea not null,
    master_key_id text collate "C" not null
);
grant select, insert on ledger.event_keys to claim_ledger_of;
grant update (wrapped, master_key_id) on ledger.event_keys to claim_ledger_of;
