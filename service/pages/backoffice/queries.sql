-- name: accounts_by_address
-- Whose address this is, or was, in the ledger of accounts: contact or member of partners, or the
-- team's. $1 is the address, which partners' rows hold; $2 its keyed hash.
select 'partner' as kind, p.partner_id as id, p.status as state, p.partner_id
from ledger.partners as p where lower(p.email) = lower($1)
union all
select
    'member', m.member_id, case when m.removed_at is null then 'member' else 'removed' end,
    m.partner_id
from ledger.members as m where m.address_hash = $2
union all
select 'staff', s.staff_id, case when s.removed_at is null then 'staff' else 'removed' end, null
from ledger.staff as s where s.address_hash = $2

-- name: accounts_by_id
-- What an id is in the ledger of accounts, and whose.
select 'partner' as kind, p.partner_id as id, p.status as state, p.partner_id
from ledger.partners as p where p.partner_id = $1
union all
select
    'key', k.key_id,
    case
        when k.revoked_at is null then k.mode
        when k.revoked_later and k.revoked_at > now() then k.mode || ', ends'
        else k.mode || ', ended'
    end,
    k.partner_id
from ledger.api_keys as k where k.key_id = $1
union all
select
    'member', m.member_id, case when m.removed_at is null then 'member' else 'removed' end,
    m.partner_id
from ledger.members as m where m.member_id = $1
union all
select 'staff', s.staff_id, case when s.removed_at is null then 'staff' else 'removed' end, null
from ledger.staff as s where s.staff_id = $1

-- name: accounts_by_name
-- Partners whose name contains a text ($1, its wildcards escaped), case aside. Nothing is indexed by
-- it: partners are few, and read whole in a moment.
select 'partner' as kind, partner_id as id, status as state, partner_id, name
from ledger.partners where name ilike '%' || $1::text || '%'
order by partner_id
limit $2

-- name: accounts_by_part
-- What ids in the ledger of accounts begin so: from $1 to $2.
select found.kind, found.id, found.state, found.partner_id
from (
    (
        select 'partner' as kind, p.partner_id as id, p.status as state, p.partner_id
        from ledger.partners as p
        where p.partner_id >= $1::text and p.partner_id < $2::text order by p.partner_id limit $3
    )
    union all
    (
        select
            'key', k.key_id, k.mode || case when k.revoked_at is null then '' else ', ended' end,
            k.partner_id
        from ledger.api_keys as k
        where k.key_id >= $1::text and k.key_id < $2::text order by k.key_id limit $3
    )
) as found

-- name: accounts_by_person
-- Who in the ledger of accounts has the person id whose 128 bits are $1: it is derived from the
-- keyed hash of the address, as `service.core.ids.stream_id` does. Nothing is indexed by it: these
-- tables hold people, not traffic, and are read whole in a moment.
with derived as (
    select
        one.kind, one.id, one.state, one.partner_id,
        substr(
            sha256('\x0000000000000040'::bytea || convert_to(encode(one.address_hash, 'hex'), 'UTF8')),
            1, 16
        ) as digest
    from (
        select
            'member' as kind, m.member_id as id,
            case when m.removed_at is null then 'member' else 'removed' end as state,
            m.partner_id, m.address_hash
        from ledger.members as m
        union all
        select
            'staff', s.staff_id, case when s.removed_at is null then 'staff' else 'removed' end,
            null, s.address_hash
        from ledger.staff as s
    ) as one
    where one.address_hash is not null
)
select d.kind, d.id, d.state, d.partner_id
from derived as d
where
    $1::bytea = set_byte(
        set_byte(d.digest, 6, (get_byte(d.digest, 6) & 15) | 128),
        8, (get_byte(d.digest, 8) & 63) | 128
    )
order by d.id

-- name: entity
-- One business.
select entity_id, name, established, registered_at from ledger.entities where entity_id = $1

-- name: entity_claims
-- A page of a business's claims, whoever created them, newest first, from before an append_id on.
-- Partner by partner, because the index begins with the partner; claims need a connection.
select l.claim_id, l.append_id, l.partner_id, l.partner_claim_id, l.stage, l.created_at
from ledger.connections as c
cross join lateral (
    select l.claim_id, l.append_id, l.partner_id, l.partner_claim_id, l.stage, l.created_at
    from ledger.claim_list as l
    where
        l.partner_id = c.partner_id and l.entity_id = c.entity_id
        and l.append_id < coalesce($2::bigint, 9223372036854775807)
    order by l.append_id desc
    limit $3
) as l
where c.entity_id = $1
order by l.append_id desc
limit $3

-- name: entity_onboardings
-- The onboardings that brought a business, and what became of their mails.
select
    o.onboarding_id, o.partner_id, o.partner_user_id, o.state, o.started_at, o.completed_at,
    m.state as mail_state
from ledger.onboardings as o
left join lateral (
    select m.state from ledger.mail_outbox as m where m.message_id = o.onboarding_id offset 0
) as m on true
where o.entity_id = $1
order by o.onboarding_id
limit 20

-- name: ledger_by_address
-- The businesses of an address, by its keyed hash: those that use the service, and those whose
-- onboarding is open. Two conditions, because each has an index.
select 'entity' as kind, entity_id as id, 'established' as state, entity_id, name
from ledger.entities where established and email_hash = $1
union all
select 'entity', entity_id, 'onboarding', entity_id, name
from ledger.entities where not established and email_hash = $1
order by id

-- name: ledger_by_id
-- What an id is in a ledger that partners write to, and to whom it belongs.
select 'claim' as kind, c.claim_id as id, c.stage as state, c.partner_id, c.entity_id, c.claim_id
from ledger.claim_list as c where c.claim_id = $1
union all
select
    'entity', e.entity_id, case when e.established then 'established' else 'onboarding' end,
    null, e.entity_id, null
from ledger.entities as e where e.entity_id = $1
union all
select 'onboarding', o.onboarding_id, o.state, o.partner_id, o.entity_id, null
from ledger.onboardings as o where o.onboarding_id = $1
union all
select 'link', l.link_id, l.state, l.partner_id, l.entity_id, null
from ledger.connect_links as l where l.link_id = $1
union all
select 'document', d.document_id, d.mime_type, c.partner_id, c.entity_id, d.claim_id
from ledger.claim_documents as d
join ledger.claim_list as c using (claim_id)
where d.document_id = $1
union all
select
    'request', r.request_id, r.method || ' ' || r.route || ': ' || r.status || ' ' || r.code,
    r.partner_id, null, null
from ledger.requests as r where r.request_id = $1

-- name: ledger_by_part
-- What ids in a ledger that partners write to begin so: from $1 to $2.
select found.kind, found.id, found.state, found.partner_id, found.entity_id, found.claim_id
from (
    (
        select
            'claim' as kind, c.claim_id as id, c.stage as state, c.partner_id, c.entity_id,
            c.claim_id
        from ledger.claim_list as c
        where c.claim_id >= $1::text and c.claim_id < $2::text order by c.claim_id limit $3
    )
    union all
    (
        select
            'entity', e.entity_id,
            case when e.established then 'established' else 'onboarding' end, null, e.entity_id, null
        from ledger.entities as e
        where e.entity_id >= $1::text and e.entity_id < $2::text order by e.entity_id limit $3
    )
    union all
    (
        select 'onboarding', o.onboarding_id, o.state, o.partner_id, o.entity_id, null
        from ledger.onboardings as o
        where o.onboarding_id >= $1::text and o.onboarding_id < $2::text
        order by o.onboarding_id limit $3
    )
    union all
    (
        select 'link', l.link_id, l.state, l.partner_id, l.entity_id, null
        from ledger.connect_links as l
        where l.link_id >= $1::text and l.link_id < $2::text order by l.link_id limit $3
    )
) as found

-- name: ledger_by_reference
-- What a partner ($2) has under a reference of its own ($1).
select found.kind, found.id, found.state, found.partner_id, found.entity_id, found.claim_id
from (
    (
        select
            'claim' as kind, c.claim_id as id, c.stage as state, c.partner_id, c.entity_id,
            c.claim_id
        from ledger.claim_list as c
        where c.partner_id = any($2::text[]) and c.partner_claim_id = $1::text
        limit $3
    )
    union all
    (
        select 'link', l.link_id, l.state, l.partner_id, l.entity_id, null
        from ledger.connect_links as l
        where l.partner_id = any($2::text[]) and l.partner_user_id = $1::text
        limit $3
    )
) as found

-- name: ledger_by_person
-- The businesses of the person whose id has these 128 bits; see `accounts_by_person`. Reads all
-- of them, so it is asked last.
with derived as (
    select
        e.entity_id, e.established, e.name,
        substr(
            sha256('\x0000000000000040'::bytea || convert_to(encode(e.email_hash, 'hex'), 'UTF8')),
            1, 16
        ) as digest
    from ledger.entities as e
    where e.email_hash is not null
)
select
    'entity' as kind, d.entity_id as id,
    case when d.established then 'established' else 'onboarding' end as state,
    d.entity_id, d.name
from derived as d
where
    $1::bytea = set_byte(
        set_byte(d.digest, 6, (get_byte(d.digest, 6) & 15) | 128),
        8, (get_byte(d.digest, 8) & 63) | 128
    )
order by d.entity_id
limit 50

-- name: partner_counts
-- How many partners are in each state.
select status, count(*) as partners from ledger.partners group by status

-- name: partner_ids
-- The partners, the newest first: whose references are looked through.
select partner_id from ledger.partners order by partner_id desc limit $1

-- name: partner_names
-- The names of partners.
select partner_id, name, status from ledger.partners where partner_id = any($1::text[])

-- name: partners_page
-- A page of the partners in one state, in the order in which they applied.
select partner_id, name, email, status, applied_at
from ledger.partners
where status = $1 and ($2::text is null or partner_id > $2)
order by partner_id
limit $3

-- name: paused_endpoints
-- Endpoints of live mode, of partners that may act, to which nothing is sent because of what they
-- answered, or did not; newest first. They are few, and read whole in a moment.
select e.endpoint_id, e.partner_id, e.disabled, e.disabled_at
from ledger.webhook_endpoints as e
join ledger.partners as p using (partner_id)
where e.disabled in ('gone', 'failing') and e.mode = 'live' and p.status = 'approved'
order by e.disabled_at desc, e.endpoint_id
limit $1

-- name: stuck
-- What stands still in a ledger until somebody acts: streams that each read model or subscriber has
-- parked, and, without its name, events that were set aside within a week and not taken back; of $1
-- at most of each.
select p.read_model, count(distinct p.stream_id) as streams, min(p.parked_at) as since
from (select read_model, stream_id, parked_at from ledger.parked limit $1) as p
group by p.read_model
union all
select null, count(*), min(s.set_aside_at)
from (
    select set_aside_at, originator_id, originator_version, topic, state, mac
    from ledger.set_aside order by id desc limit $1
) as s
where
    s.set_aside_at > clock_timestamp() - interval '7 days'
    and not exists(
        select from ledger.events as e
        where
            e.originator_id = s.originator_id and e.originator_version = s.originator_version
            and e.topic = s.topic and e.state = s.state and e.mac = s.mac
        offset 0
    )
having count(*) > 0
