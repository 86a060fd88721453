-- What became of a sign-in mail, and when it is tried again if it has to be.
update ledger.sign_in_links
set mail_state = $2, mail_attempts = mail_attempts + 1, mail_next_at = now() + $3::interval
where link_id = $1
