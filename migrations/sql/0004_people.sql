-- People who sign in: their links and sessions (operational: nothing here is a fact of the ledger),
-- and who of them belongs to the team.

-- E-mail addresses are wrapped by a master key; they are found by a keyed hash.
create table ledger.sign_in_links (
    link_id text collate "C" primary key,
    token_hash bytea not null unique,
    address_hash bytea not null,
    wrapped bytea not null,
    master_key_id text collate "C" not null,
    asked_at timestamptz not null,
    expires_at timestamptz not null,
    used_at timestamptz,
    mail_state text not null default 'waiting',
    mail_attempts int not null default 0,
    mail_next_at timestamptz not null
);
create index sign_in_links_of_address on ledger.sign_in_links (address_hash, asked_at);
create index sign_in_mail_waiting on ledger.sign_in_links (mail_next_at)
where mail_state = 'waiting';

create table ledger.sessions (
    token_hash bytea primary key,
    session_id text collate "C" not null unique,
    address_hash bytea not null,
    wrapped bytea not null,
    master_key_id text collate "C" not null,
    started_at timestamptz not null,
    expires_at timestamptz not null,
    ended_at timestamptz
);
create index sessions_of_address on ledger.sessions (address_hash);

create table ledger.staff (
    staff_id text collate "C" primary key,
    stream_id uuid not null,
    address_hash bytea,
    added_at timestamptz not null,
    removed_at timestamptz
);
create index staff_by_address on ledger.staff (address_hash) where removed_at is null;

grant select, insert, update, delete on ledger.sign_in_links, ledger.sessions to claim_ledger_of;
grant select, insert, update, delete, truncate on ledger.staff to claim_ledger_of;
