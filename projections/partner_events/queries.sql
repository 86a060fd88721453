-- name: about
-- Which of the positions ($2) have an event of a partner's, and the id of what each is about, as `page`
-- names it: a claim, what brought the entity, or the entity once the partner has used its id.
select
    e.position,
    coalesce(
        e.claim_id, e.onboarding_id, e.link_id, b.onboarding_id, b.link_id,
        case
            when exists(
                select from ledger.claim_list as u
                where u.partner_id = $1 and u.entity_id = e.entity_id
            ) then e.entity_id
        end
    ) as about
from unnest($2::bigint[]) as w (position)
cross join lateral (
    select p.stream_id, p.position, p.type, p.entity_id, p.claim_id, p.onboarding_id, p.link_id
    from ledger.partner_events as p
    where p.partner_id = $1 and p.position = w.position
    offset 0
) as e
left join lateral (
    select r.onboarding_id, r.link_id
    from (
        select f.position, f.onboarding_id, f.link_id
        from ledger.partner_events as f
        where f.stream_id = e.stream_id and f.position <= e.position
        order by f.position desc
        limit $3
    ) as r
    where r.onboarding_id is not null or r.link_id is not null
    order by r.position desc
    limit 1
) as b on e.type in ('entity.connected', 'entity.disconnected')

-- name: follow
-- What happened to claims after their creation, which stands before it in the same stream. Without one
-- the row has no partner, and is refused: then the event is parked.
insert into ledger.partner_events (
    stream_id, position, partner_id, type, at, claim_id, stage, document_id
)
select
    one.stream_id, one.position, c.partner_id, one.type, one.at, c.claim_id, one.stage,
    one.document_id
from unnest($1::uuid[], $2::bigint[], $3::text[], $4::timestamptz[], $5::text[], $6::text[])
    as one (stream_id, position, type, at, stage, document_id)
left join ledger.partner_events as c
on c.stream_id = one.stream_id and c.type = 'claim.created'

-- name: page
-- At most $3 of a partner's events after a position, in the log's order, and the leaf hash of the event
-- at that position (null: the log has none there). A page ends before an event of the partner's that
-- is parked, so that nobody has passed it when it is retried: the first event of its stream names the
-- partner ($4, its JSON). What another than this service wrote is never retried ($5).
-- An entity's id is the partner's to know once they have used it, for a claim; `connected_id` is not
-- theirs. The event before it in the stream has the stage that a claim left. What brought an entity is
-- what connected it last by then, among so many events of its connection ($6): the team and the sandbox
-- connect it again and again by nothing.
with page as (
    select
        e.stream_id, e.position, e.type, e.at, e.entity_id, e.claim_id, e.stage, e.document_id,
        e.onboarding_id, e.link_id
    from ledger.partner_events as e
    where e.partner_id = $1 and e.position > $2
    order by e.position
    limit $3
), held as (
    select p.position
    from ledger.parked as p
    cross join lateral (
        select i.state from ledger.events as i
        where i.originator_id = p.stream_id and i.originator_version = 1 offset 0
    ) as e
    where
        p.read_model = 'partner_events' and p.position > $2
        and p.position <= (select max(b.position) from page as b) and p.error <> $5
        and position($4::bytea in e.state) > 0
    order by p.position
    limit 1
), told as (
    select
        p.position, p.type, p.at, p.entity_id, p.claim_id, p.stage, p.document_id,
        s.stage as previous_stage,
        coalesce(p.onboarding_id, b.onboarding_id) as onboarding_id,
        coalesce(p.link_id, b.link_id) as link_id
    from page as p
    left join lateral (
        select f.stage
        from ledger.partner_events as f
        where
            f.stream_id = p.stream_id and f.position < p.position
            and f.type <> 'claim.document_flagged'
        order by f.position desc
        limit 1
    ) as s on p.type = 'claim.stage_changed'
    left join lateral (
        select r.onboarding_id, r.link_id
        from (
            select f.position, f.onboarding_id, f.link_id
            from ledger.partner_events as f
            where f.stream_id = p.stream_id and f.position <= p.position
            order by f.position desc
            limit $6
        ) as r
        where r.onboarding_id is not null or r.link_id is not null
        order by r.position desc
        limit 1
    ) as b on p.type in ('entity.connected', 'entity.disconnected')
    where p.position < coalesce((select h.position from held as h), 9223372036854775807)
)
select
    a.leaf_hash as after_hash, t.position, l.leaf_hash, t.type, t.at, t.claim_id, t.stage,
    t.previous_stage, t.document_id, t.onboarding_id, t.link_id, c.partner_claim_id,
    coalesce(c.partner_user_id, o.partner_user_id, k.partner_user_id) as partner_user_id,
    case
        when t.claim_id is not null then c.entity_id
        when exists(
            select from ledger.claim_list as u
            where u.partner_id = $1 and u.entity_id = t.entity_id
        ) then t.entity_id
    end as entity_id,
    t.entity_id as connected_id
from (select (select leaf_hash from ledger.log where position = $2) as leaf_hash) as a
left join (
    told as t
    cross join lateral (
        select i.leaf_hash from ledger.log as i where i.position = t.position offset 0
    ) as l
    left join ledger.claim_list as c on c.claim_id = t.claim_id
    left join ledger.onboardings as o on o.onboarding_id = t.onboarding_id
    left join ledger.connect_links as k on k.link_id = t.link_id
) on true
order by t.position
