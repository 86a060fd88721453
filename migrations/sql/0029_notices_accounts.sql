-- Mails about events of accounts, as live has them of its own.
create table ledger.mail_outbox (
    message_id text collate "C" primary key,
    stream_id uuid not null,
    version bigint,
    noted_at timestamptz not null,
    attempts int not null default 0,
    next_attempt_at timestamptz not null,
    state text not null default 'waiting'
);
create index mail_outbox_waiting on ledger.mail_outbox (next_attempt_at) where state = 'waiting';
create index mail_outbox_failed on ledger.mail_outbox (message_id) where state = 'failed';
create index mail_outbox_withheld on ledger.mail_outbox (message_id) where state = 'withheld';

create table ledger.mail_recipients (
    message_id text collate "C" primary key,
    partner_id text collate "C" not null,
    recipient_hash bytea not null,
    counted_at timestamptz not null
);
create index mail_recipients_by_hash on ledger.mail_recipients (recipient_hash, counted_at);
create index mail_recipients_by_age on ledger.mail_recipients (counted_at);

grant select, insert, update on ledger.mail_outbox to claim_ledger_of;
grant select, insert, update, delete on ledger.mail_recipients to claim_ledger_of;
