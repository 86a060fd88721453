-- name: api_keys
-- The partners' keys, oldest first, never a secret or its hash.
select key_id, partner_id, mode, issued_at, revoked_at
from ledger.api_keys
where $1::text is null and $2::text is null and ($3::text is null or partner_id = $3)
order by key_id

-- name: claim_list
-- The claims, newest first as `GET /claims` has them.
select
    claim_id, partner_id, entity_id, partner_claim_id, partner_user_id, partner_invoice_ids,
    stage, created_at
from ledger.claim_list
where
    ($1::text is null or claim_id = $1)
    and ($2::text is null or entity_id = $2)
    and ($3::text is null or partner_id = $3)
order by append_id desc

-- name: connect_links
-- The connect links, oldest first, never a token's hash. Those of a claim were redeemed by its
-- entity for its partner.
select k.link_id, k.partner_id, k.state, k.entity_id, k.issued_at, k.expires_at
from ledger.connect_links as k
where
    ($1::text is null or exists(
        select from ledger.claim_list as l
        where l.claim_id = $1 and l.entity_id = k.entity_id and l.partner_id = k.partner_id
    ))
    and ($2::text is null or k.entity_id = $2)
    and ($3::text is null or k.partner_id = $3)
order by k.issued_at, k.link_id

-- name: connections
-- The connections, by entity and partner. Those of a claim are its entity's with its partner.
select c.entity_id, c.partner_id, c.connected_at, c.disconnected_at
from ledger.connections as c
where
    ($1::text is null or exists(
        select from ledger.claim_list as l
        where l.claim_id = $1 and l.entity_id = c.entity_id and l.partner_id = c.partner_id
    ))
    and ($2::text is null or c.entity_id = $2)
    and ($3::text is null or c.partner_id = $3)
order by c.entity_id, c.partner_id

-- name: claim_documents
-- The documents of the claims that are shown, by claim.
select d.document_id, d.claim_id, d.storage_path, d.mime_type, d.size, d.generation, d.crc32c
from ledger.claim_documents as d
join ledger.claim_list as l using (claim_id)
where
    ($1::text is null or l.claim_id = $1)
    and ($2::text is null or l.entity_id = $2)
    and ($3::text is null or l.partner_id = $3)
order by d.claim_id, d.document_id

-- name: entities
-- The entities, oldest first: all, one, or those that a partner was ever connected to or onboarded.
select e.entity_id, e.name, e.established, e.registered_at
from ledger.entities as e
where
    ($1::text is null or exists(
        select from ledger.claim_list as l where l.claim_id = $1 and l.entity_id = e.entity_id
    ))
    and ($2::text is null or e.entity_id = $2)
    and ($3::text is null or exists(
        select from ledger.connections as c where c.partner_id = $3 and c.entity_id = e.entity_id
        union all
        select from ledger.onboardings as o where o.partner_id = $3 and o.entity_id = e.entity_id
    ))
order by e.registered_at, e.entity_id

-- name: erasures
-- The erasures up to the moment, oldest first: all, those of a claim, of an entity with its claims and
-- links, or of whatever concerns a partner.
select x.subject, x.position, x.at, x.reason
from ledger.erasures as x
where
    ($1::text is null or x.subject = $1)
    and ($2::text is null or x.subject = $2 or exists(
        select from ledger.claim_list as l where l.claim_id = x.subject and l.entity_id = $2
        union all
        select from ledger.connect_links as k where k.link_id = x.subject and k.entity_id = $2
    ))
    and ($3::text is null or exists(
        select from ledger.claim_list as l where l.claim_id = x.subject and l.partner_id = $3
        union all
        select from ledger.connect_links as k where k.link_id = x.subject and k.partner_id = $3
        union all
        select from ledger.connections as c where c.entity_id = x.subject and c.partner_id = $3
        union all
        select from ledger.onboardings as o where o.entity_id = x.subject and o.partner_id = $3
    ))
order by x.position

-- name: erasures_table
-- What was erased, for this transaction only.
create temporary table erasures (
    subject text collate "C" not null, position bigint not null, at timestamptz not null,
    reason text not null
) on commit drop

-- name: event
-- The event at a position, and its hash in the log.
select
    l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state, l.leaf_hash
from ledger.log as l
join ledger.events as e using (append_id)
where l.position = $1

-- name: leaves_at
-- The hashes of the log at these positions.
select position, leaf_hash from ledger.log where position = any($1::bigint[])

-- name: onboardings
-- The onboardings, oldest first. Those of a claim are its entity's by its partner.
select
    o.onboarding_id, o.partner_id, o.partner_user_id, o.entity_id, o.state,
    o.started_at, o.completed_at
from ledger.onboardings as o
where
    ($1::text is null or exists(
        select from ledger.claim_list as l
        where l.claim_id = $1 and l.entity_id = o.entity_id and l.partner_id = o.partner_id
    ))
    and ($2::text is null or o.entity_id = $2)
    and ($3::text is null or o.partner_id = $3)
order by o.started_at, o.onboarding_id

-- name: page
-- A range of the log, in order, until its events have $3 bytes: each event, null where it is gone, and
-- its hash. Those beyond a position ($4) have their MACs, too. Where a position is in the log more than
-- once, all its rows are of one page.
with measured as (
    select
        l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state,
        case when l.position > $4 then e.mac end as mac, l.leaf_hash,
        sum(octet_length(e.state)) over w as bytes_before
    from ledger.log as l
    left join ledger.events as e using (append_id)
    where l.position > $1 and l.position <= $2
    window w as (order by l.position groups between unbounded preceding and 1 preceding)
)
select position, append_id, originator_id, originator_version, topic, state, mac, leaf_hash
from measured
where coalesce(bytes_before, 0) < $3
order by position

-- name: page_back
-- A range of the log as `page` has it, last position first.
with measured as (
    select
        l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state,
        case when l.position > $4 then e.mac end as mac, l.leaf_hash,
        sum(octet_length(e.state)) over w as bytes_before
    from ledger.log as l
    left join ledger.events as e using (append_id)
    where l.position > $1 and l.position <= $2
    window w as (order by l.position desc rows between unbounded preceding and 1 preceding)
)
select position, append_id, originator_id, originator_version, topic, state, mac, leaf_hash
from measured
where coalesce(bytes_before, 0) < $3
order by position desc

-- name: partners
-- The partners, oldest first. Their accounts know no claims and no entities.
select partner_id, name, email, status, return_link, suppress_email, applied_at
from ledger.partners
where $1::text is null and $2::text is null and ($3::text is null or partner_id = $3)
order by partner_id

-- name: plan
-- Reading a page in its order: by its index, row by row. Sorting it first, or starting processes for it,
-- takes longer than a page does. For this transaction.
select
    set_config('enable_sort', 'off', true),
    set_config('enable_hashjoin', 'off', true),
    set_config('enable_mergejoin', 'off', true),
    set_config('max_parallel_workers_per_gather', '0', true)

-- name: size
-- How many events have a position, as the head says, and where the log ends.
select h.size, coalesce((select max(position) from ledger.log), 0) as last
from ledger.head as h
where h.id = 1

-- name: table
-- A table of a read model's shape and without its rows, for this transaction only.
create temporary table the_table (like ledger.the_table including all excluding indexes) on commit drop

-- name: table_key
-- A table's primary key, as a statement that adds it says it.
select pg_get_constraintdef(oid) as key
from pg_constraint
where conrelid = to_regclass($1) and contype = 'p'

-- name: signed
-- A checkpoint of a size and an origin.
select
    case when octet_length(note) > 4096 then '' else note end as note,
    case when octet_length(tree) > 2048 then '\x00'::bytea else tree end as tree
from ledger.checkpoints where size = $1 and origin = $2

-- name: signed_sizes
-- What was signed, by size.
select size, origin from ledger.checkpoints
where octet_length(origin) <= 2048
order by size, origin

-- name: stream_leaves
-- The numbered events of a stream: what their hashes are of.
select l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state
from ledger.events as e
join ledger.log as l using (append_id)
where e.originator_id = $1
order by l.position
