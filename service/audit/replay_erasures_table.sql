-- What was erased, for this transaction only.
create temporary table erasures (
    subject text collate "C" not null, position bigint not null, at timestamptz not null,
    reason text not null
) on commit drop
