-- Documents of claims whose content is still to be checked. A row goes when its check is done. The
-- table stays small and churns: vacuum it early.
create table ledger.document_checks (
    position bigint not null,
    document_id text collate "C" not null,
    stream_id uuid not null,
    claim_id text collate "C" not null,
    storage_path text collate "C" not null,
    mime_type text not null,
    size bigint not null,
    generation bigint not null,
    noted_at timestamptz not null,
    attempts int not null default 0,
    next_attempt_at timestamptz not null,
    primary key (position, document_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, fillfactor = 70);
create index document_checks_due on ledger.document_checks (next_attempt_at);

grant select, insert, update, delete on ledger.document_checks to claim_ledger_of;

-- What checks found. A table of its own: few documents are ever in it, and the large one stays as it
-- is.
create table ledger.document_flags (
    document_id text collate "C" not null,
    claim_id text collate "C" not null,
    reason text not null,
    flagged_at timestamptz not null,
    primary key (document_id, reason)
);
create index document_flags_by_age on ledger.document_flags (flagged_at);

grant select, insert, update, delete, truncate on ledger.document_flags to claim_ledger_of;
