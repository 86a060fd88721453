-- The event that a mail is about, by its version in the stream; null where it is about all of the stream,
-- as an onboarding's is.
alter table ledger.mail_outbox add column version bigint;

-- Whether the person of a business wants to be told when a claim moves to another stage.
alter table ledger.entities add column stage_mails boolean not null default false;
