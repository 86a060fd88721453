-- Is anything due? Takes no lock and draws no transaction id.
select 1 from ledger.mail_outbox where state = 'waiting' and next_attempt_at <= $1 limit 1
