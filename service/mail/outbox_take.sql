-- The mail that has been due longest, held until its attempt is counted.
select message_id, stream_id, attempts, noted_at
from ledger.mail_outbox
where state = 'waiting' and next_attempt_at <= $1
order by next_attempt_at
limit 1
for update skip locked
