-- name: checks_attached
-- The events by which documents were attached, by their positions ($1), as they are stored.
select l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state, e.mac
from unnest($1::bigint[]) as asked (position)
cross join lateral (
    select i.position, i.append_id from ledger.log as i where i.position = asked.position offset 0
) as l
cross join lateral (
    select i.append_id, i.originator_id, i.originator_version, i.topic, i.state, i.mac
    from ledger.events as i where i.append_id = l.append_id offset 0
) as e
where e.topic = 'DocumentsAttached'

-- name: checks_done
-- A document was checked.
delete from ledger.document_checks where position = $1 and document_id = $2

-- name: checks_due
-- Is any check due? Takes no lock and draws no transaction id.
select 1 from ledger.document_checks where next_attempt_at <= $1 limit 1

-- name: checks_note
-- Documents to check, due since they were attached, or now where a clock that was ahead dated that. What
-- a row has beside position, document and times is for processes of an earlier release, which may take
-- it: this one reads the event.
insert into ledger.document_checks (
    position, stream_id, next_attempt_at, partner_id, claim_id, document_id, storage_path, mime_type,
    size, generation, noted_at
)
select
    n.position, n.stream_id, least(n.attached_at, now()), n.partner_id, n.claim_id, n.document_id,
    n.storage_path, n.mime_type, n.size, n.generation, now()
from unnest(
    $1::bigint[], $2::uuid[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::text[],
    $8::text[], $9::bigint[], $10::bigint[]
) as n (
    position, stream_id, attached_at, partner_id, claim_id, document_id, storage_path, mime_type, size,
    generation
)
on conflict do nothing

-- name: checks_remove
-- Removes what an event queued that is left; it is set aside.
delete from ledger.document_checks where position = $1 returning document_id

-- name: checks_take
-- Counts an attempt of the checks of a partner ($4) that have been due longest, and returns them. They
-- are due again at $3, should this process be cut off.
with due as (
    select position, document_id from ledger.document_checks
    where next_attempt_at <= $1 and partner_id = $4
    order by next_attempt_at, position, document_id
    limit $2
    for update skip locked
)
update ledger.document_checks set attempts = attempts + 1, next_attempt_at = $3
where
    position = any(array(select d.position from due as d))
    and (position, document_id) in (select d.position, d.document_id from due as d)
returning position, document_id, attempts

-- name: checks_turn
-- Draws the partner, of those who have a check that is due, whose turn it is.
with recursive waiting (partner_id) as (
    select min(c.partner_id) from ledger.document_checks as c
    union all
    select (select min(c.partner_id) from ledger.document_checks as c where c.partner_id > w.partner_id)
    from waiting as w where w.partner_id is not null
)
select w.partner_id from waiting as w
where exists(
    select from ledger.document_checks as c
    where c.partner_id = w.partner_id and c.next_attempt_at <= $1
)
order by random()
limit 1

-- name: checks_wait
-- A check failed, and is due again later.
update ledger.document_checks set next_attempt_at = $3 where position = $1 and document_id = $2

-- name: context
-- What checking documents decides on, before the claim's transaction: the entity and the last event of
-- the partner's connection ($1), whether the claim exists, and which of the paths were minted for it.
-- One round trip.
select
    e.entity_id, e.name, e.established,
    c.append_id as connection_id, c.originator_version as version, c.topic, c.state, c.mac,
    case
        when coalesce(c.mac, '') < $5
            then (select l.position from ledger.log as l where l.append_id = c.append_id)
    end as connection_position,
    exists(
        select from ledger.events where originator_id = $3 and originator_version = 1
    ) as made,
    array(
        select storage_path from ledger.uploads
        where storage_path = any($4::text[]) and claim_stream = $3 and swept_at is null
    ) as minted
from (values (1)) as one (nr)
left join ledger.entities as e on e.entity_id = $2
left join lateral (
    select l.append_id, l.originator_version, l.topic, l.state, l.mac
    from ledger.events as l
    where l.originator_id = $1
    order by l.originator_version desc limit 1
) as c on true

-- name: forget
-- Takes an upload from everybody but the sweep unless a claim refers to it by now that has not been
-- erased; answers a row if it was taken. Its row goes when its object has gone.
update ledger.uploads as u set swept_at = $2
where
    u.storage_path = $1
    and not exists(
        select from ledger.claim_documents as d
        where d.storage_path = u.storage_path and not d.erased
    )
returning u.storage_path

-- name: forgotten
-- The object of a swept upload has gone, and its row goes too.
delete from ledger.uploads where storage_path = $1 and swept_at is not null

-- name: unforget
-- These uploads are named by events, and are nobody's to sweep.
update ledger.uploads set swept_at = null where storage_path = any($1::text[])

-- name: known
-- Which of some paths ($1) have a row: they were minted, or are those of a linked document.
select p.path
from unnest($1::text[]) as p (path)
where
    exists(select from ledger.uploads as u where u.storage_path = p.path offset 0)
    or exists(select from ledger.claim_documents as d where d.storage_path = p.path offset 0)

-- name: begun
-- Which of some streams ($1) have begun.
select s.stream_id
from unnest($1::uuid[]) as s (stream_id)
where exists(
    select from ledger.events as e
    where e.originator_id = s.stream_id and e.originator_version = 1 offset 0
)

-- name: mint
-- A path was minted, unless its claim has $6 already; answers a row if it was. Of those that come at
-- once, a few may be beyond that: nothing is locked.
insert into ledger.uploads (storage_path, claim_stream, mime_type, max_bytes, minted_at)
select $1, $2::uuid, $3, $4, $5
where (
    select count(*) from (select from ledger.uploads where claim_stream = $2 limit $6::bigint) as few
) < $6
returning storage_path

-- name: orphans
-- Uploads that no claim refers to, or an erased one, and that are older than a moment, or that an
-- earlier sweep or an erasure has not finished, in the order of their paths. None whose URL may still be
-- valid: its object could come back when its row has gone.
select u.storage_path, u.claim_stream
from ledger.uploads as u
where
    (u.minted_at < $1 or (u.swept_at is not null and u.minted_at < now() - interval '1 hour'))
    and u.storage_path > $2
    and not exists(
        select from ledger.claim_documents as d
        where d.storage_path = u.storage_path and not d.erased
    )
order by u.storage_path
limit $3

-- name: sweep_alone
-- Whether no other sweep of this ledger ($1) is running, until this transaction ends.
select pg_try_advisory_xact_lock(hashtext('claim-ledger sweep'), hashtext($1))
