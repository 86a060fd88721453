-- What each partner is told of, in the log's order: ids and stages, nothing personal. Later events of
-- a stream look up the earlier ones.
create table ledger.partner_events (
    stream_id uuid not null,
    position bigint not null,
    partner_id text collate "C" not null,
    type text collate "C" not null,
    at timestamptz not null,
    entity_id text collate "C",
    claim_id text collate "C",
    stage text collate "C",
    document_id text collate "C",
    onboarding_id text collate "C",
    link_id text collate "C",
    primary key (stream_id, position)
);
create unique index partner_events_of_partner on ledger.partner_events (partner_id, position);

grant select, insert on ledger.partner_events to claim_ledger_of;
