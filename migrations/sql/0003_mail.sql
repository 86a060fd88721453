-- Mail that was given up is counted at every scrape, and must not cost a walk over all that was sent.
create index mail_outbox_failed on ledger.mail_outbox (message_id) where state = 'failed';
