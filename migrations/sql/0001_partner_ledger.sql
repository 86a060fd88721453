-- The read models of a ledger that partners write to (live and test).

create table ledger.entities (
    entity_id text collate "C" primary key,
    stream_id uuid not null,
    name text not null,
    email_hash bytea,
    company_number_hash bytea,
    established boolean not null,
    registered_at timestamptz not null
);
create index entities_by_email on ledger.entities (email_hash) where established;
create index entities_by_company_number on ledger.entities (company_number_hash)
where established;

create table ledger.connections (
    partner_id text collate "C" not null,
    entity_id text collate "C" not null,
    version bigint not null,
    connected_at timestamptz not null,
    disconnected_at timestamptz,
    primary key (partner_id, entity_id)
);

create table ledger.onboardings (
    onboarding_id text collate "C" primary key,
    stream_id uuid not null unique,
    partner_id text collate "C" not null,
    partner_user_id text collate "C" not null,
    entity_id text collate "C" not null,
    magic_link_hash bytea unique,
    expires_at timestamptz,
    state text not null,
    started_at timestamptz not null,
    completed_at timestamptz
);

create table ledger.connect_links (
    link_id text collate "C" primary key,
    stream_id uuid not null,
    token_hash bytea not null,
    partner_id text collate "C" not null,
    state text not null,
    entity_id text collate "C",
    issued_at timestamptz not null,
    expires_at timestamptz
);
create unique index connect_links_by_token on ledger.connect_links (token_hash)
where expires_at is not null;

-- Newest first is the ledger's own order of appending: append_id, which no two rows share.
create table ledger.claim_list (
    claim_id text collate "C" primary key,
    append_id bigint not null,
    stream_id uuid not null,
    partner_id text collate "C" not null,
    entity_id text collate "C" not null,
    partner_claim_id text collate "C" not null,
    partner_user_id text collate "C",
    partner_invoice_ids text not null,
    stage text not null,
    created_at timestamptz not null
);
create index claim_list_page on ledger.claim_list (partner_id, entity_id, append_id);
create index claim_list_page_of_user
on ledger.claim_list (partner_id, entity_id, partner_user_id, append_id)
where partner_user_id is not null;

-- Mail to send: a reference to the event that asks for it, never an address or a link.
create table ledger.mail_outbox (
    message_id text collate "C" primary key,
    stream_id uuid not null,
    noted_at timestamptz not null,
    attempts int not null default 0,
    next_attempt_at timestamptz not null,
    state text not null default 'waiting'
);
create index mail_outbox_waiting on ledger.mail_outbox (next_attempt_at) where state = 'waiting';

grant select, insert, update, delete, truncate
on ledger.entities, ledger.connections, ledger.onboardings, ledger.connect_links,
ledger.claim_list, ledger.mail_outbox
to claim_ledger_of;
