-- The calls of partners, kept for thirty days, for the developer console. Operational: no facts.
-- Never a body, a query, a secret or personal data: what was called, and how it ended.

create table ledger.requests (
    request_id text collate "C" primary key,
    partner_id text collate "C" not null,
    key_id text collate "C" not null,
    at timestamptz not null,
    method text collate "C" not null,
    route text collate "C" not null,
    status smallint not null,
    code text collate "C" not null,
    duration_ms real not null
);
create index requests_of_partner on ledger.requests (partner_id, at, request_id);

-- The same by the minute: for pictures of the last day, and with the days as the index of every
-- filter. An index of the calls for each filter would cost each call more than all its look-ups.
create table ledger.request_counts (
    partner_id text collate "C" not null,
    minute timestamptz not null,
    status smallint not null,
    code text collate "C" not null,
    method text collate "C" not null,
    route text collate "C" not null,
    key_id text collate "C" not null,
    requests int not null,
    primary key (partner_id, minute, status, code, method, route, key_id)
);

-- The same by the day (of UTC), so that thirty days are a few hundred rows.
create table ledger.request_days (
    partner_id text collate "C" not null,
    day date not null,
    status smallint not null,
    code text collate "C" not null,
    method text collate "C" not null,
    route text collate "C" not null,
    key_id text collate "C" not null,
    requests bigint not null,
    first_at timestamptz not null,
    last_at timestamptz not null,
    primary key (partner_id, day, status, code, method, route, key_id)
);
-- Whose old calls there are to forget: those tables have no index of age, which pages could be
-- read off by mistake, and which each call would pay for.
create index request_days_by_day on ledger.request_days (day);

grant select, insert, delete on ledger.requests to claim_ledger_of;
grant select, insert, update, delete on ledger.request_counts, ledger.request_days
to claim_ledger_of;
