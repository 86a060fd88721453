-- name: claim_told
-- A claim whose person may be told where it is, its business, and whether they want to be told.
select c.entity_id, c.stage, e.stage_mails
from ledger.claim_list as c
join ledger.entities as e on e.entity_id = c.entity_id
where c.claim_id = $1

-- name: entity_used
-- Has a partner used the id of a business?
select 1 from ledger.claim_list where partner_id = $1 and entity_id = $2 limit 1

-- name: outbox_any_sent
-- Was one of these mails sent, to whomever they were shared among? ($2 follows every such id.)
select 1
from unnest($1::text[]) as asked (message_id)
join ledger.mail_outbox as m
on m.message_id >= asked.message_id and m.message_id < asked.message_id || $2::text
where m.state = 'sent'
limit 1

-- name: outbox_due
-- Is anything due? Takes no lock and draws no transaction id.
select 1 from ledger.mail_outbox where state = 'waiting' and next_attempt_at <= $1 limit 1

-- name: outbox_hold
-- A mail whose attempt was counted, held while it is sent; none where anything else came in between.
select message_id from ledger.mail_outbox
where message_id = $1 and state = 'waiting' and attempts = $2
for update skip locked

-- name: outbox_note
-- Mail to send, due now: an event of a clock that was ahead is dated later than that.
insert into ledger.mail_outbox (message_id, stream_id, version, noted_at, next_attempt_at)
select
    noted.message_id, noted.stream_id, noted.version, least(noted.at, now()), least(noted.at, now())
from unnest($1::text[], $2::uuid[], $3::bigint[], $4::timestamptz[])
    as noted (message_id, stream_id, version, at)
on conflict do nothing

-- name: outbox_note_stages
-- Mail about claims ($5) that moved, of businesses whose person wants it: $6 at the most of each
-- business and partner. Due as `outbox_note`. (Citus makes a syntax error of an insert that selects from
-- these tables itself, with the time.)
with wanted as materialized (
    select
        moved.message_id, moved.stream_id, moved.version, least(moved.at, now()) as at,
        row_number() over (partition by c.entity_id, c.partner_id order by moved.at) as nr
    from unnest($1::text[], $2::uuid[], $3::bigint[], $4::timestamptz[], $5::text[])
        as moved (message_id, stream_id, version, at, claim_id)
    join ledger.claim_list as c on c.claim_id = moved.claim_id
    join ledger.entities as e on e.entity_id = c.entity_id
    where e.stage_mails
)
insert into ledger.mail_outbox (message_id, stream_id, version, noted_at, next_attempt_at)
select wanted.message_id, wanted.stream_id, wanted.version, wanted.at, wanted.at
from wanted
where wanted.nr <= $6
on conflict do nothing

-- name: outbox_sent
-- A mail that was sent before the database was restored, unless it is being sent right now.
update ledger.mail_outbox set state = 'sent' where message_id = (
    select message_id from ledger.mail_outbox
    where message_id = $1 and state = 'waiting'
    for update skip locked
) returning message_id

-- name: outbox_settle
-- What became of a mail after so many attempts ($2), unless anything else has come in between.
update ledger.mail_outbox set state = $3, attempts = $4, next_attempt_at = $5
where message_id = $1 and state = 'waiting' and attempts = $2

-- name: outbox_share
-- A mail for each of the people ($3) whom a notice ($1) is for, under its id, a sign ($2) and theirs,
-- due now, also where a process's clock ($4) is ahead. (For Citus as in `outbox_note_stages`.)
with shares as materialized (
    select
        m.message_id || $2::text || shared.who as message_id, m.stream_id, m.version, m.noted_at,
        least($4::timestamptz, now()) as due_at
    from ledger.mail_outbox as m
    cross join unnest($3::text[]) as shared (who)
    where m.message_id = $1
)
insert into ledger.mail_outbox (message_id, stream_id, version, noted_at, next_attempt_at)
select s.message_id, s.stream_id, s.version, s.noted_at, s.due_at
from shares as s
on conflict do nothing

-- name: outbox_take
-- The mail whose turn it is, held until its attempt is counted: of what is due, as much from either end
-- of the line ($3), the mail of a stream that had no turn lately which has been due longest. $2 are the
-- streams that had one, the latest last; after all others, it is the first one's again. As many as $4
-- may be held by other processes. (A plan that was made when little waited would look for these few
-- among all that waits, but for `coalesce`, which has no index.)
with due as (
    (
        select message_id, stream_id, next_attempt_at from ledger.mail_outbox
        where state = 'waiting' and next_attempt_at <= $1
        order by next_attempt_at limit $3
    )
    union all
    (
        select message_id, stream_id, next_attempt_at from ledger.mail_outbox
        where state = 'waiting' and next_attempt_at <= $1
        order by next_attempt_at desc limit $3
    )
)
select
    m.message_id, m.stream_id, m.version, m.attempts, m.noted_at,
    (
        select ledger.event_digest(e.originator_id, e.originator_version, e.topic, e.state)
        from ledger.events as e
        where e.originator_id = m.stream_id and e.originator_version = m.version
    ) as digest
from ledger.mail_outbox as m
where
    coalesce(m.state, '') = 'waiting' and m.next_attempt_at <= $1
    and m.message_id = any(array(
        select due.message_id from due
        order by array_position($2::uuid[], due.stream_id) nulls first, due.next_attempt_at
        limit $4
    ))
order by array_position($2::uuid[], m.stream_id) nulls first, m.next_attempt_at
limit 1
for update of m skip locked

-- name: outbox_waiting
-- Every mail that is still to be sent, with the digest of its event if it is a notice.
select
    m.message_id, m.noted_at,
    ledger.event_digest(e.originator_id, e.originator_version, e.topic, e.state) as digest
from ledger.mail_outbox as m
left join lateral (
    select i.originator_id, i.originator_version, i.topic, i.state
    from ledger.events as i
    where i.originator_id = m.stream_id and i.originator_version = m.version
    offset 0
) as e on true
where m.state = 'waiting'
order by m.message_id

-- name: recipient_admit
-- Counts a mail ($1, of partner $2) to a mailbox ($3) at a moment ($4), unless it was counted, or the
-- mailbox has had enough since $5: $6 mails of all partners, $7 of this one, of which all but the
-- first while there were fewer than $8.
with known as (
    select message_id from ledger.mail_recipients where message_id = $1
), counted as (
    insert into ledger.mail_recipients (message_id, partner_id, recipient_hash, counted_at)
    select $1, $2, $3, $4
    where not exists(select from known) and (
        select
            count(*) < $6 and count(*) filter (where r.partner_id = $2) < $7
            and (count(*) < $8 or count(*) filter (where r.partner_id = $2) = 0)
        from ledger.mail_recipients as r
        where r.recipient_hash = $3 and r.counted_at >= $5
    )
    returning message_id
)
select exists(select from known) or exists(select from counted) as admitted

-- name: recipient_forget
-- Deletes what was counted longer than $2 ago, a bounded number at a time. Returns how many. A process's
-- clock ($1) that is ahead makes nothing old.
with gone as (
    delete from ledger.mail_recipients where message_id = any(array(
        select message_id from ledger.mail_recipients
        where counted_at < least($1::timestamptz, now()) - $2::interval
        order by counted_at
        limit $3
        for update skip locked
    ))
    returning 1
)
select count(*) as deleted from gone

-- name: recipient_try_lock
-- Lets mails to one mailbox take turns, until the end of the transaction, without waiting for each other.
select pg_try_advisory_xact_lock($1) as held
