-- Every mail that is still to be sent.
select message_id from ledger.mail_outbox where state = 'waiting' order by message_id
