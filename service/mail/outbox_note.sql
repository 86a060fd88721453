-- Mail to send.
insert into ledger.mail_outbox (message_id, stream_id, noted_at, next_attempt_at)
select noted.message_id, noted.stream_id, noted.at, noted.at
from unnest($1::text[], $2::uuid[], $3::timestamptz[]) as noted (message_id, stream_id, at)
on conflict do nothing
