-- What only the ledger of accounts has: the service's own secrets, and who may call.

-- Pepper, link key and look-up key, each wrapped by a master key: one ring roots every secret.
create table ledger.service_keys (
    name text collate "C" primary key,
    wrapped bytea not null,
    master_key_id text collate "C" not null
);

create table ledger.partners (
    partner_id text collate "C" primary key,
    stream_id uuid not null,
    name text not null,
    email text not null,
    status text not null,
    return_link boolean not null default false,
    suppress_email boolean not null default false,
    sandbox_epoch int not null default 0,
    applied_at timestamptz not null
);

create table ledger.api_keys (
    key_id text collate "C" primary key,
    partner_id text collate "C" not null,
    mode text not null,
    secret_hash bytea not null,
    issued_at timestamptz not null,
    revoked_at timestamptz
);
create index api_keys_of_partner on ledger.api_keys (partner_id);

grant select, insert on ledger.service_keys to claim_ledger_of;
grant select, insert, update, delete, truncate on ledger.partners, ledger.api_keys
to claim_ledger_of;
