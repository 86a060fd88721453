-- Where partners are told of their events: a URL of theirs each, and how its secret is made.
create table ledger.webhook_endpoints (
    endpoint_id text collate "C" primary key,
    partner_id text collate "C" not null,
    mode text not null,
    url text not null,
    types text not null,
    added_at timestamptz not null,
    secret_version int not null default 1,
    secret_rotated_at timestamptz,
    disabled text,
    disabled_at timestamptz
);
create index webhook_endpoints_of_partner on ledger.webhook_endpoints (partner_id, added_at);

grant select, insert, update on ledger.webhook_endpoints to claim_ledger_of;
