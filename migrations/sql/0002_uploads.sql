-- Documents of the ledgers that partners write to.

-- Uploads that were minted: operational, not events (nothing has happened until a claim refers to
-- one). A path that is not here was never ours, or has been swept; `swept_at` says that it is being
-- swept, so that a sweep that is cut off is finished by the next one.
create table ledger.uploads (
    storage_path text collate "C" primary key,
    claim_stream uuid not null,
    mime_type text not null,
    max_bytes bigint not null,
    minted_at timestamptz not null,
    swept_at timestamptz
);
create index uploads_by_age on ledger.uploads (minted_at);

create table ledger.claim_documents (
    document_id text collate "C" primary key,
    claim_id text collate "C" not null,
    storage_path text collate "C" not null unique,
    mime_type text not null,
    size bigint not null,
    generation bigint not null,
    crc32c text not null
);
create index claim_documents_of_claim on ledger.claim_documents (claim_id);

grant select, insert, update, delete, truncate on ledger.uploads, ledger.claim_documents
to claim_ledger_of;
