-- How many sign-in mails wait, for how many seconds the oldest does, and how many were not sent:
-- refused, or of no use any more before the mail server took them. Old links are deleted.
select
    count(*) filter (where mail_state = 'waiting' and expires_at > now()) as waiting,
    coalesce(
        extract(epoch from now() - min(asked_at) filter (
            where mail_state = 'waiting' and expires_at > now()
        )),
        0
    )::float8 as oldest_seconds,
    count(*) filter (
        where mail_state = 'failed' or (mail_state = 'waiting' and expires_at <= now())
    ) as failed
from ledger.sign_in_links
