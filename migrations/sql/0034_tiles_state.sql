-- How many events the tiles of the present lineage have, null before any were written, and whether
-- the log, or what is written of it, does not hold.
alter table ledger.checkpoint_state
    add column tiles_size bigint,
    add column tiles_unsound boolean not null default false;
