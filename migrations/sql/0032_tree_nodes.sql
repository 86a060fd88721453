-- Inner nodes of the log's tree, so that a proof costs what it proves and not the log: the hashes of
-- complete subtrees of 256 leaves (level 1), of 65,536 (level 2), and so on. The worker makes them
-- behind the checkpoints. They are derived, so they can be deleted, and are never trusted: what is read
-- here has to lead to a signed root, or else the leaves are read.
create table ledger.tree_nodes (
    level int not null check (level between 1 and 7),
    node_index bigint not null check (node_index >= 0),
    hash bytea not null check (octet_length(hash) = 32),
    primary key (level, node_index)
);
grant select, insert, delete on ledger.tree_nodes to claim_ledger_of;
