-- A mail whose attempt was counted, held while it is sent; none where anything else came in between.
select message_id from ledger.mail_outbox
where message_id = $1 and state = 'waiting' and attempts = $2
for update skip locked
