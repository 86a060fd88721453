-- The oldest sign-in mail that is due, held until the end of the transaction.
select link_id, wrapped, master_key_id, asked_at, expires_at, mail_attempts
from ledger.sign_in_links
where mail_state = 'waiting' and mail_next_at <= now() and expires_at > now()
order by mail_next_at
limit 1
for update skip locked
