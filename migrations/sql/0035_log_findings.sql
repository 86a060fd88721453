-- What passes through the log have found beside its hashes: events of somebody who could not act
-- (actors), and kept nodes of the tree that are not the log's (tree_nodes). `position` is how far the
-- present pass has looked, `seen` how many it has found; `faults`, and the first of them, stay until a
-- whole pass has found none. The MAC is as that of log_verification: a row without it is a finding.
create table ledger.log_findings (
    kind text collate "C" primary key,
    position bigint not null default 0,
    seen bigint not null default 0,
    faults bigint not null default 0,
    fault_position bigint,
    fault text collate "C",
    mac bytea
);
insert into ledger.log_findings values ('actors'), ('tree_nodes');
grant select, update on ledger.log_findings to claim_ledger_of;
