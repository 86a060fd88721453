-- Mail that waits for what an event of this stream says.
select message_id from ledger.mail_outbox where stream_id = any($1::uuid[]) and state = 'waiting'
