-- Is a sign-in mail to be sent? Takes no lock and draws no transaction id.
select 1 from ledger.sign_in_links
where mail_state = 'waiting' and mail_next_at <= now() and expires_at > now() limit 1
