-- A mail that was sent before the database was restored, unless it is being sent right now.
update ledger.mail_outbox set state = 'sent' where message_id = (
    select message_id from ledger.mail_outbox
    where message_id = $1 and state = 'waiting'
    for update skip locked
) returning message_id
