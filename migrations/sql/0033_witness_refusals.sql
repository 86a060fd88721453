-- Witnesses that refuse this log's checkpoints because they do not continue what they signed before: one
-- row a witness, until it signs again. It is for alarms alone, and no evidence.
create table ledger.witness_refusals (
    name text collate "C" not null check (octet_length(name) between 1 and 255),
    key_id bytea not null check (octet_length(key_id) = 4),
    origin text collate "C" not null,
    size bigint not null,
    refused_at timestamptz not null,
    primary key (name, key_id)
);
grant select, insert, update, delete on ledger.witness_refusals to claim_ledger_of;
