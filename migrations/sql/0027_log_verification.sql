-- Where the pass through the log is that verifies it in slices: after which position, with the tree up
-- to there; when the last whole one ended, and over how many events. `fault` is what a pass has found,
-- until a later one finds nothing. Its MAC is by the key that binds events: who cannot make one can
-- only have a pass begin anew.
create table ledger.log_verification (
    id int primary key check (id = 1),
    position bigint not null default 0,
    tree bytea not null default '',
    began_at timestamptz,
    finished_at timestamptz,
    size bigint not null default 0,
    fault_position bigint,
    fault text collate "C",
    mac bytea
);
insert into ledger.log_verification values (1);
grant select, update on ledger.log_verification to claim_ledger_of;
