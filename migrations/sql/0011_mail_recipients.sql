-- Mails of the last day by the mailbox that they went to, as a keyed hash. Rows go after a day.
create table ledger.mail_recipients (
    message_id text collate "C" primary key,
    partner_id text collate "C" not null,
    recipient_hash bytea not null,
    counted_at timestamptz not null
);
create index mail_recipients_by_hash on ledger.mail_recipients (recipient_hash, counted_at);
create index mail_recipients_by_age on ledger.mail_recipients (counted_at);

-- Mail that was withheld is counted at scrapes, as mail that was given up is.
create index mail_outbox_withheld on ledger.mail_outbox (message_id) where state = 'withheld';

grant select, insert, update, delete on ledger.mail_recipients to claim_ledger_of;
