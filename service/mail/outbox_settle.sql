-- What became of an attempt.
update ledger.mail_outbox set state = $2, attempts = $3, next_attempt_at = $4
where message_id = $1
