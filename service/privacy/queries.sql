-- name: any_upload_under
-- Whether a path was minted that begins with this one, which ends with a slash: `0` comes after it.
select 1 as found from ledger.uploads
where storage_path > $1 and storage_path < left($1, -1) || '0' limit 1

-- name: check_data_keys
-- Data keys after one, and whether an event says, whoever wrote it, that their subject was erased.
select
    k.key_id::text as name, k.wrapped, k.master_key_id,
    exists(
        select from ledger.events as e
        where e.originator_id = k.key_id and e.topic = 'PersonalDataErased'
    ) as told_erased
from ledger.data_keys as k
where k.key_id > $1::uuid
order by k.key_id
limit $2

-- name: check_event_keys
-- The keys that bind events after one, named by what their wrapping is bound to.
select name, wrapped, master_key_id
from
    ledger.event_keys as k,
    lateral (
        select 'event key ' || key_id || case when since_start then ' since the start' else '' end as name
    ) as named
where name > $1
order by name
limit $2

-- name: event_keys_sign
-- Since when each key signs that binds events.
select
    key_id, signs_from, 'event key ' || key_id || case when since_start then ' since the start' else '' end as name
from ledger.event_keys

-- name: check_service_keys
-- The service's own secrets after one.
select name, wrapped, master_key_id
from ledger.service_keys
where name > $1
order by name
limit $2

-- name: check_sessions
-- Sessions after one that can be used, with what they are bound to.
select
    session_id as name, wrapped, master_key_id,
    token_hash, session_id, address_hash, person_id, started_at, expires_at, seen_at
from ledger.sessions
where session_id > $1 and expires_at > now() and ended_at is null
order by session_id
limit $2

-- name: check_sign_in_links
-- Sign-in links after one that can be used, with what they are bound to.
select
    link_id as name, wrapped, master_key_id,
    link_id, token_hash, address_hash, recipient_hash, asked_at, expires_at
from ledger.sign_in_links
where link_id > $1 and expires_at > now() and used_at is null
order by link_id
limit $2

-- name: claim_streams
-- The streams of some claims, by their rows.
select claim_id as subject, stream_id from ledger.claim_list where claim_id = any($1::text[])

-- name: claims_of_entity
-- The claims of an entity, oldest first: subjects of their own. Those that its log names ($2, in the
-- streams $3), and others that the read model has. A claim without a row has no stage. Those that both
-- have are found by sorting, and events are looked up for each: a plan that was made before the claims
-- were known, or for empty tables, would look through all claims, or the log, for each of them.
with found as (
    select distinct on (claim_id) claim_id, stream_id
    from (
        select claim_id collate "C" as claim_id, stream_id, 1 as rank
        from unnest($2::text[], $3::uuid[]) as named (claim_id, stream_id)
        union all
        select l.claim_id, l.stream_id, 2
        from ledger.connections as c
        join ledger.claim_list as l on l.partner_id = c.partner_id and l.entity_id = c.entity_id
        where c.entity_id = $1
    ) as either
    order by claim_id, rank
)
select f.claim_id, f.stream_id, l.stage
from found as f
left join ledger.claim_list as l on l.claim_id = f.claim_id
order by (
    select first.append_id from ledger.events as first
    where first.originator_id = f.stream_id and first.originator_version = 1
)

-- name: destroy_keys
-- What these keys sealed can be read by nobody from now on.
delete from ledger.data_keys where key_id = any($1::uuid[]) returning key_id

-- name: entity
-- What the erasure of an entity has to keep still: its look-up hashes and its connections; and the
-- links that it redeemed, whose labels are about it.
select
    e.email_hash, e.company_number_hash,
    array(
        select partner_id from ledger.connections where entity_id = e.entity_id order by partner_id
    ) as partner_ids,
    array(
        select link_id from ledger.connect_links where entity_id = e.entity_id order by link_id
    ) as link_ids
from ledger.entities as e
where e.entity_id = $1

-- name: exists
-- Is there such a table?
select to_regclass($1) is not null as found

-- name: beginnings
-- How some streams ($1) began. Each is looked up by itself.
select s.stream_id, b.append_id, b.topic, b.state, b.mac
from unnest($1::uuid[]) as s (stream_id)
cross join lateral (
    select e.append_id, e.topic, e.state, e.mac
    from ledger.events as e
    where e.originator_id = s.stream_id and e.originator_version = 1 offset 0
) as b

-- name: facts
-- What an erasure decides on: how a subject's stream began, and the version before the first free one:
-- somebody may have taken a far one. No row's box is opened for it.
select
    first.append_id as made_id, first.topic, first.state as made, first.mac as made_mac,
    (
        select min(e.originator_version)
        from (
            select originator_version, lead(originator_version) over (order by originator_version) as next
            from ledger.events
            where originator_id = $1
        ) as e
        where e.next - e.originator_version is distinct from 1
    ) as version
from ledger.events as first
where first.originator_id = $1 and first.originator_version = 1

-- name: find_columns
-- Every table of the ledger's read models, mail and operation with its columns that hold text or bytes,
-- also of read models that are being rebuilt or kept for a way back. The log itself is opened event
-- by event.
select
    c.table_schema, c.table_name, array_agg(c.column_name::text order by c.ordinal_position) as columns,
    coalesce(
        (
            select array_agg(a.attname::text order by a.attnum)
            from pg_index as i
            join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
            where
                i.indisprimary
                and i.indrelid = format('%I.%I', c.table_schema, c.table_name)::regclass
        ),
        '{}'
    ) as key
from information_schema.columns as c
join information_schema.tables as t using (table_schema, table_name)
where
    c.table_schema = any($1::text[])
    and t.table_type = 'BASE TABLE'
    and c.data_type in ('text', 'character varying', 'json', 'jsonb', 'bytea', 'ARRAY')
    and c.table_name <> all($2::text[])
group by c.table_schema, c.table_name
order by c.table_schema, c.table_name

-- name: find_events
-- Events after one, in the order of their appending, each with its position if it has one. At most
-- $2, until they have $3 bytes.
with batch as (
    select append_id, originator_id, originator_version, topic, state, mac
    from ledger.events
    where append_id > $1
    order by append_id
    limit $2
), measured as (
    select
        append_id, originator_id, originator_version, topic, state, mac,
        sum(octet_length(state)) over w as bytes_before
    from batch
    window w as (order by append_id rows between unbounded preceding and 1 preceding)
)
select l.position, m.append_id, m.originator_id, m.originator_version, m.topic, m.state, m.mac
from measured as m
left join ledger.log as l using (append_id)
where coalesce(m.bytes_before, 0) < $3
order by m.append_id

-- name: find_mail
-- Mail that waits for what an event of this stream says.
select message_id from ledger.mail_outbox where stream_id = any($1::uuid[]) and state = 'waiting'

-- name: forget_recipient
-- Mails are no longer counted for an entity's mailbox, whose hashes ($2) go. Where the address is not
-- known any more, those of its onboarding.
delete from ledger.mail_recipients
where
    recipient_hash = any($2::bytea[])
    or message_id = any(array(select onboarding_id from ledger.onboardings where entity_id = $1))

-- name: forget_uploads
-- The objects of an erased claim have gone, and these rows go too. A younger one stays: its URL could
-- still take an upload, which the next sweep finds by its row.
delete from ledger.uploads where claim_stream = $1 and minted_at < $2

-- name: hold_staff
-- Keeps rebuilds from swapping what the erasure of a member of the team clears.
lock table ledger.staff in row exclusive mode

-- name: hold_tables
-- Keeps rebuilds from swapping what an erasure clears. It waits for one that does, and holds no lock that
-- claims need meanwhile.
lock table ledger.entities, ledger.onboardings, ledger.claim_documents in row exclusive mode

-- name: keys_left
-- Which of these data keys exist, and for the streams of the same ids the version before the first free
-- one. Nothing is unwrapped.
select
    k.key_id,
    (
        select min(e.originator_version)
        from (
            select originator_version, lead(originator_version) over (order by originator_version) as next
            from ledger.events
            where originator_id = k.key_id
        ) as e
        where e.next - e.originator_version is distinct from 1
    ) as version
from ledger.data_keys as k
where k.key_id = any($1::uuid[])
order by k.key_id

-- name: keys_of_events
-- These data keys as they are stored, without a wrapping if they are gone.
select asked.key_id, k.wrapped, k.master_key_id
from unnest($1::uuid[]) as asked (key_id)
left join ledger.data_keys as k using (key_id)

-- name: linked_uploads
-- To which of some paths ($1) a claim refers that has not been erased.
select p.path
from unnest($1::text[]) as p (path)
where exists(
    select from ledger.claim_documents as d where d.storage_path = p.path and not d.erased offset 0
)

-- name: rotate_data_keys
-- A batch of data keys that an older master key wraps, held until they are wrapped anew. One that is
-- being destroyed is passed over: it is gone, or comes again in the next round.
select key_id::text as name, wrapped, master_key_id
from ledger.data_keys
where master_key_id <> $1 and key_id > $2::uuid
order by key_id
limit $3
for update skip locked

-- name: rotate_data_keys_write
-- Data keys, wrapped anew.
update ledger.data_keys as k set wrapped = anew.wrapped, master_key_id = $3
from unnest($1::uuid[], $2::bytea[]) as anew (key_id, wrapped)
where k.key_id = anew.key_id

-- name: rotate_event_keys
-- The keys that bind events, those that an older master key wraps; named by what that is bound to.
select name, wrapped, master_key_id
from
    ledger.event_keys as k,
    lateral (
        select 'event key ' || key_id || case when since_start then ' since the start' else '' end as name
    ) as named
where master_key_id <> $1 and name > $2
order by name
limit $3
for update of k skip locked

-- name: rotate_event_keys_write
-- The keys that bind events, wrapped anew.
update ledger.event_keys as k set wrapped = anew.wrapped, master_key_id = $3
from unnest($1::text[], $2::bytea[]) as anew (name, wrapped)
where
    'event key ' || k.key_id || case when k.since_start then ' since the start' else '' end
    = anew.name

-- name: rotate_service_keys
-- The service's own secrets that an older master key wraps.
select name, wrapped, master_key_id
from ledger.service_keys
where master_key_id <> $1 and name > $2
order by name
limit $3
for update skip locked

-- name: rotate_service_keys_write
-- The service's own secrets, wrapped anew.
update ledger.service_keys as k set wrapped = anew.wrapped, master_key_id = $3
from unnest($1::text[], $2::bytea[]) as anew (name, wrapped)
where k.name = anew.name

-- name: rotate_sessions
-- Sessions whose address an older master key wraps, with what it is bound to. One that is over is
-- opened by nobody any more.
select
    session_id as name, wrapped, master_key_id,
    token_hash, session_id, address_hash, person_id, started_at, expires_at, seen_at
from ledger.sessions
where master_key_id <> $1 and session_id > $2 and expires_at > now() and ended_at is null
order by session_id
limit $3
for update skip locked

-- name: rotate_sessions_write
-- Sessions, wrapped anew.
update ledger.sessions as k set wrapped = anew.wrapped, master_key_id = $3
from unnest($1::text[], $2::bytea[]) as anew (name, wrapped)
where k.session_id = anew.name

-- name: rotate_sign_in_links
-- Sign-in links whose address an older master key wraps, with what it is bound to. One that is over
-- is opened by nobody any more.
select
    link_id as name, wrapped, master_key_id,
    link_id, token_hash, address_hash, recipient_hash, asked_at, expires_at
from ledger.sign_in_links
where master_key_id <> $1 and link_id > $2 and expires_at > now() and used_at is null
order by link_id
limit $3
for update skip locked

-- name: rotate_sign_in_links_write
-- Sign-in links, wrapped anew.
update ledger.sign_in_links as k set wrapped = anew.wrapped, master_key_id = $3
from unnest($1::text[], $2::bytea[]) as anew (name, wrapped)
where k.link_id = anew.name

-- name: settle_mail
-- Mail that waits for an entity's person is not sent: of its onboarding, or about its claims' stages.
-- One that is on its way is waited for. What is both waiting and theirs is found by sorting: there may be
-- many of either, and to compare each with each takes longer than an erasure may. (The mail is looked up
-- by its id, but for `coalesce` among all that waits.)
with streams as (
    select w.stream_id, w.message_id from ledger.mail_outbox as w where w.state = 'waiting'
    union all
    select o.stream_id, null from ledger.onboardings as o where o.entity_id = $1
    union all
    select l.stream_id, null
    from ledger.connections as c
    join ledger.claim_list as l on l.partner_id = c.partner_id and l.entity_id = c.entity_id
    where c.entity_id = $1
), sorted as (
    select message_id, bool_or(message_id is null) over (partition by stream_id) as is_theirs from streams
)
update ledger.mail_outbox as m set state = 'obsolete'
where
    coalesce(m.state, '') = 'waiting'
    and m.message_id = any(array(
        select s.message_id from sorted as s where s.is_theirs and s.message_id is not null
    ))
returning m.message_id

-- name: staff_streams
-- The streams of some of the team's members, by their rows.
select staff_id as subject, stream_id from ledger.staff where staff_id = any($1::text[])

-- name: streams_of_uploads
-- The streams of the claims for which some paths ($1) were minted.
select distinct claim_stream from ledger.uploads where storage_path = any($1::text[])

-- name: take_uploads
-- Nobody can link these uploads any more. Their objects are deleted next, and the rows by the next sweep:
-- it also finds what an erasure left that was cut off, and what came back through a URL.
update ledger.uploads set swept_at = now() where storage_path = any($1::text[]) and swept_at is null

-- name: unclaimed_uploads
-- Which of some paths ($1) are those of no claim: none refers to them, and none was created for which
-- they were minted.
select p.path
from unnest($1::text[]) as p (path)
where
    not exists(select from ledger.claim_documents as d where d.storage_path = p.path offset 0)
    and not exists(
        select from ledger.uploads as u
        where
            u.storage_path = p.path
            and exists(
                select from ledger.events as e
                where e.originator_id = u.claim_stream and e.originator_version = 1 offset 0
            )
        offset 0
    )

-- name: unlisted
-- The streams of subjects that were erased, as an event says, whoever wrote it, and whom the erasure
-- list does not name. A link that was redeemed is none of its own: that may have been after its entity's
-- erasure was listed.
select distinct e.originator_id
from ledger.events as e
join ledger.events as first using (originator_id)
where
    e.topic = 'PersonalDataErased'
    and first.originator_version = 1
    and (first.topic <> 'ConnectLinkIssued' or not exists(
        select from ledger.events as r
        where r.originator_id = e.originator_id and r.topic = 'ConnectLinkRedeemed'
    ))
    and e.originator_id not in (select unnest($1::uuid[]))

-- name: unnumbered
-- Of each of some streams ($1), the first hundred events that have no number, with what their MACs are
-- of.
select
    0::bigint as position, e.append_id, e.originator_id, e.originator_version,
    ledger.event_digest(e.originator_id, e.originator_version, e.topic, e.state) as digest,
    e.mac
from unnest($1::uuid[]) as asked (stream_id)
cross join lateral (
    select one.append_id, one.originator_id, one.originator_version, one.topic, one.state, one.mac
    from ledger.events as one
    where
        one.originator_id = asked.stream_id
        and not exists(select from ledger.log as l where l.append_id = one.append_id)
    order by one.originator_version limit 100
) as e

-- name: uploads_of_claim
-- Paths that were minted for a claim.
select storage_path from ledger.uploads where claim_stream = $1 order by storage_path

-- name: wrapped_data_keys
-- How many data keys each master key wraps.
select master_key_id, count(*) as keys from ledger.data_keys group by 1 order by 1

-- name: wrapped_event_keys
-- How many of the keys that bind events each master key wraps.
select master_key_id, count(*) as keys from ledger.event_keys group by 1 order by 1

-- name: wrapped_service_keys
-- How many of the service's own secrets each master key wraps.
select master_key_id, count(*) as keys from ledger.service_keys group by 1 order by 1

-- name: wrapped_sessions
-- How many sessions that can still be used each master key wraps.
select master_key_id, count(*) as keys from ledger.sessions
where expires_at > now() and ended_at is null group by 1 order by 1

-- name: wrapped_sign_in_links
-- How many sign-in links that can still be used each master key wraps.
select master_key_id, count(*) as keys from ledger.sign_in_links
where expires_at > now() and used_at is null group by 1 order by 1
