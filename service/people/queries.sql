-- name: anyone
-- Is anybody staff?
select 1 from ledger.staff where removed_at is null limit 1

-- name: expired_links
-- Deletes sign-in links that ended longer ago than $1, at most $2. Returns how many.
with gone as (
    delete from ledger.sign_in_links where link_id = any(array(
        select old.link_id from ledger.sign_in_links as old
        where old.expires_at < now() - $1::interval
        limit $2
        for update skip locked
    ))
    returning 1
)
select count(*) as deleted from gone

-- name: expired_sessions
-- The same for sessions.
with gone as (
    delete from ledger.sessions where session_id = any(array(
        select old.session_id from ledger.sessions as old
        where old.expires_at < now() - $1::interval
        limit $2
        for update skip locked
    ))
    returning 1
)
select count(*) as deleted from gone

-- name: expired_sign_outs
-- The same for when people signed out everywhere.
with gone as (
    delete from ledger.sign_outs where person_id = any(array(
        select old.person_id from ledger.sign_outs as old
        where old.at < now() - $1::interval
        limit $2
        for update skip locked
    ))
    returning 1
)
select count(*) as deleted from gone

-- name: forget_links
-- Removes the links of an address that was erased: they lead nowhere.
delete from ledger.sign_in_links where address_hash = $1

-- name: forget_sessions
-- Removes the sessions of an address that was erased: they end.
delete from ledger.sessions where address_hash = $1

-- name: hold_sessions
-- Waits for whoever is beginning a session in place of one of a person's; in one order, so that two
-- who end them do not wait for each other.
select session_id from ledger.sessions where person_id = $1 order by session_id for update

-- name: link_ask
-- Notes a sign-in link to be sent, unless enough were lately that are counted together ($4).
-- Its mail takes its turn as of $11.
insert into ledger.sign_in_links (
    link_id, token_hash, address_hash, recipient_hash, asked_at, expires_at,
    wrapped, master_key_id, mail_next_at
)
select $1, $2, $3, $4, $5, $6, $7, $8, $11
where $10 > (
    select count(*) from ledger.sign_in_links
    where recipient_hash = $4 and asked_at > $5::timestamptz - $9::interval
)

-- name: link_lock
-- Lets those who ask for one mailbox's links take turns, so that none counts too few. A statement
-- of its own: in READ COMMITTED the count sees the world as of its start, which is after the wait.
select pg_advisory_xact_lock(('x' || encode(substr($1::bytea, 1, 8), 'hex'))::bit(64)::bigint)

-- name: link_look
-- A sign-in link by its token's hash, by the database's clock.
select
    link_id, token_hash, address_hash, recipient_hash, wrapped, master_key_id, asked_at, expires_at,
    used_at, expires_at <= now() as expired
from ledger.sign_in_links where token_hash = $1

-- name: link_use
-- Uses a link up, once: whoever comes second gets no row. What it held goes too, so that nobody makes
-- it new by taking back that it was used. Its mail has arrived.
update ledger.sign_in_links set used_at = now(), wrapped = '', mail_state = 'sent'
where token_hash = $1 and used_at is null and expires_at > now()
returning link_id

-- name: list
-- Everybody who is staff now, in the order in which they were added.
select staff_id, stream_id, added_at from ledger.staff where removed_at is null order by added_at

-- name: staff_address
-- The keyed hash of the address of whoever is or was staff.
select address_hash from ledger.staff where staff_id = $1

-- name: mail_due
-- Is a sign-in mail to be sent? Takes no lock and draws no transaction id.
select 1 from ledger.sign_in_links
where mail_state = 'waiting' and mail_next_at <= now() and expires_at > now() limit 1

-- name: mail_read
-- A sign-in mail whose attempt ($2) was counted, unless anything else has come in between.
select
    link_id, token_hash, address_hash, recipient_hash, wrapped, master_key_id, asked_at, expires_at
from ledger.sign_in_links
where link_id = $1 and mail_state = 'waiting' and mail_attempts = $2

-- name: mail_settle
-- What became of a sign-in mail after so many attempts ($2), unless anything else has come in between;
-- and how long until it is tried again if it has to be.
update ledger.sign_in_links
set mail_state = $3, mail_attempts = $4, mail_next_at = clock_timestamp() + $5::interval
where link_id = $1 and mail_state = 'waiting' and mail_attempts = $2

-- name: mail_take
-- Counts an attempt, after $1 the one that is too many, of the oldest sign-in mail that is due. It is
-- due again after $2, should this process be cut off. Somebody may have written any number there.
update ledger.sign_in_links as l
set
    mail_attempts = least(greatest(l.mail_attempts, 0), $1) + 1,
    mail_next_at = clock_timestamp() + $2::interval
where l.link_id = (
    select due.link_id from ledger.sign_in_links as due
    where due.mail_state = 'waiting' and due.mail_next_at <= now() and due.expires_at > now()
    order by due.mail_next_at
    limit 1
    for update skip locked
)
returning l.link_id, l.address_hash, l.mail_attempts

-- name: mark_holds
-- Is a mark of a person's browser, made at $2, younger than $3, and than their last sign-out everywhere?
select
    $2::timestamptz > now() - $3::interval
    and not exists(select from ledger.sign_outs where person_id = $1 and at >= $2) as holds

-- name: now
-- The time of the transaction, by the database's clock.
select now() as now

-- name: session_begin
-- A session begins.
insert into ledger.sessions (
    token_hash, session_id, address_hash, person_id, started_at, expires_at, wrapped, master_key_id
) values ($1, $2, $3, $4, $5, $6, $7, $8)

-- name: session_end
-- A session ends; no row for one that has ended before. What it holds goes, so that nobody revives it
-- by taking back its end.
update ledger.sessions set ended_at = now(), wrapped = '' where token_hash = $1 and ended_at is null
returning session_id

-- name: session_end_one
-- One of a person's sessions ends; its times show whether it held until then.
update ledger.sessions set ended_at = now(), wrapped = ''
where person_id = $1 and session_id = $2 and ended_at is null
returning started_at, seen_at, expires_at, ended_at

-- name: session_end_others
-- All sessions of a person end but one, as one does.
update ledger.sessions set ended_at = now(), wrapped = ''
where person_id = $1 and session_id <> $2 and ended_at is null
returning started_at, seen_at, expires_at, ended_at

-- name: session_known
-- Was this person signed in lately? What is long over is forgotten.
select exists(select from ledger.sessions where person_id = $1) as known

-- name: session_last
-- By what address a person was signed in lately, whether or not that session has ended.
select address_hash from ledger.sessions where person_id = $1 order by started_at desc limit 1

-- name: session_list
-- The sessions of a person that hold, newest first; $2 is how long one may be left unused.
select
    token_hash, session_id, address_hash, person_id, started_at, expires_at, seen_at, wrapped,
    master_key_id
from ledger.sessions
where
    person_id = $1 and ended_at is null and expires_at > now()
    and coalesce(seen_at, started_at) > now() - $2::interval
order by started_at desc
limit $3

-- name: session_read
-- A session that holds, by its token's hash: $2 is how long it may be left unused, $3 how long a
-- proof is fresh.
select
    token_hash, session_id, address_hash, person_id, started_at, expires_at, seen_at, wrapped,
    master_key_id,
    now() as read_at, now() - coalesce(seen_at, started_at) as unseen,
    started_at > now() - $3::interval as is_fresh
from ledger.sessions
where
    token_hash = $1 and ended_at is null and expires_at > now()
    and coalesce(seen_at, started_at) > now() - $2::interval

-- name: session_seen
-- A session is in use ($3), sealed anew ($4, $5) if nobody did so meanwhile ($2). Nobody waits for a
-- replica to have this, which a failover may lose.
with unwaited as (select set_config('synchronous_commit', 'off', true) as setting)
update ledger.sessions as s set seen_at = $3, wrapped = $4, master_key_id = $5 from unwaited as u
where s.token_hash = $1 and s.wrapped = $2 and s.ended_at is null and u.setting = 'off'

-- name: sign_out_note
-- A person signs out everywhere: now, whenever the transaction began, which may have waited for others.
-- None takes back a later one.
insert into ledger.sign_outs as known (person_id, at) values ($1, clock_timestamp())
on conflict (person_id) do update set at = greatest(known.at, excluded.at)
