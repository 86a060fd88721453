-- How many mails wait, since when the oldest does, and how many were given up: by partial indexes.
select
    (select count(*) from ledger.mail_outbox where state = 'waiting') as waiting,
    (select min(noted_at) from ledger.mail_outbox where state = 'waiting') as oldest_at,
    (select count(*) from ledger.mail_outbox where state = 'failed') as failed
