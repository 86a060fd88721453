-- name: outbox_due
-- Is anything due? Takes no lock and draws no transaction id.
select 1 from ledger.mail_outbox where state = 'waiting' and next_attempt_at <= $1 limit 1

-- name: outbox_hold
-- A mail whose attempt was counted, held while it is sent; none where anything else came in between.
select message_id from ledger.mail_outbox
where message_id = $1 and state = 'waiting' and attempts = $2
for update skip locked

-- name: outbox_note
-- Mail to send.
insert into ledger.mail_outbox (message_id, stream_id, noted_at, next_attempt_at)
select noted.message_id, noted.stream_id, noted.at, noted.at
from unnest($1::text[], $2::uuid[], $3::timestamptz[]) as noted (message_id, stream_id, at)
on conflict do nothing

-- name: outbox_sent
-- A mail that was sent before the database was restored, unless it is being sent right now.
update ledger.mail_outbox set state = 'sent' where message_id = (
    select message_id from ledger.mail_outbox
    where message_id = $1 and state = 'waiting'
    for update skip locked
) returning message_id

-- name: outbox_settle
-- What became of an attempt.
update ledger.mail_outbox set state = $2, attempts = $3, next_attempt_at = $4
where message_id = $1

-- name: outbox_take
-- The mail that has been due longest, held until its attempt is counted.
select message_id, stream_id, attempts, noted_at
from ledger.mail_outbox
where state = 'waiting' and next_attempt_at <= $1
order by next_attempt_at
limit 1
for update skip locked

-- name: outbox_waiting
-- Every mail that is still to be sent.
select message_id from ledger.mail_outbox where state = 'waiting' order by message_id
