-- name: by_id
-- One claim.
select
    claim_id, append_id, stream_id, partner_id, entity_id, partner_claim_id, partner_user_id,
    partner_invoice_ids, stage, created_at
from ledger.claim_list
where claim_id = $1

-- name: count_by_stage
-- How many claims a partner has in each stage that is asked for; of each, $3 are counted at most.
select asked.stage, counted.claims
from unnest($2::text[]) with ordinality as asked (stage, nr)
cross join lateral (
    select count(*) as claims
    from (
        select from ledger.claim_list as l
        where l.partner_id = $1 and l.stage = asked.stage
        order by l.append_id desc  -- without an order, the whole table may seem as good
        limit $3
    ) as found
) as counted
order by asked.nr

-- name: page
-- A page of one partner's claims for one entity, newest first, with what else the answer needs; with
-- $5, only those of one of the partner's users. No row: no such entity. `token_found` false: the token
-- is not one of these claims. Of the two branches one runs, each along an index of its own. It finds
-- $4 claims, one more than the page has: `more` is whether another follows. The page ends before a
-- claim with which its invoice references have more than $6 bytes; their length alone is read then.
-- Its columns are listed once, outermost: there, `*` would change a kept plan's result with the schema.
-- A column of the table must not be named as one of those that are added here.
with access as (
    select e.name, c.connected_at, c.disconnected_at
    from ledger.entities as e
    left join ledger.connections as c on c.entity_id = e.entity_id and c.partner_id = $1
    where e.entity_id = $2
), token as (
    select append_id
    from ledger.claim_list
    where
        claim_id = $3 and partner_id = $1 and entity_id = $2
        and ($5::text is null or partner_user_id = $5)
)
select
    a.name, a.connected_at, a.disconnected_at,
    $3::text is null or t.append_id is not null as token_found,
    p.claim_id, p.entity_id, p.partner_claim_id, p.partner_user_id, p.partner_invoice_ids,
    p.stage, p.created_at, p.page_more as more
from access as a
left join token as t on true
left join lateral (
    select
        found.*,
        row_number() over newest as page_nr,
        sum(octet_length(found.partner_invoice_ids)) over newest as page_bytes,
        lead(found.append_id) over newest is not null as page_more
    from (
        (
            select l.* from ledger.claim_list as l
            where
                $5::text is null
                and l.partner_id = $1 and l.entity_id = $2
                and l.append_id < coalesce(t.append_id, 9223372036854775807)
            order by l.append_id desc
            limit $4
        )
        union all
        (
            select l.* from ledger.claim_list as l
            where
                $5::text is not null
                and l.partner_id = $1 and l.entity_id = $2 and l.partner_user_id = $5
                and l.append_id < coalesce(t.append_id, 9223372036854775807)
            order by l.append_id desc
            limit $4
        )
    ) as found
    window newest as (order by found.append_id desc)
) as p on p.page_nr < $4 and (p.page_nr = 1 or p.page_bytes <= $6)
order by p.append_id desc

-- name: page_of_connection
-- A page of one partner's claims for one entity, newest first, from after a place on.
select claim_id, stream_id, partner_claim_id, stage, created_at
from ledger.claim_list
where partner_id = $1 and entity_id = $2 and append_id < $3
order by append_id desc
limit $4

-- name: page_of_partner
-- A page of one partner's claims over all its entities, newest first, from after a place on.
select
    claim_id, append_id, entity_id, partner_user_id, partner_claim_id, stage, created_at
from ledger.claim_list
where partner_id = $1 and append_id < $2
order by append_id desc
limit $3

-- name: page_of_partner_oldest
-- The same, oldest first.
select
    claim_id, append_id, entity_id, partner_user_id, partner_claim_id, stage, created_at
from ledger.claim_list
where partner_id = $1 and append_id > $2
order by append_id
limit $3

-- name: page_of_partner_stage
-- The same, newest first, of the claims in a stage.
select
    claim_id, append_id, entity_id, partner_user_id, partner_claim_id, stage, created_at
from ledger.claim_list
where partner_id = $1 and stage = $4 and append_id < $2
order by append_id desc
limit $3

-- name: page_of_partner_stage_oldest
-- The same, oldest first.
select
    claim_id, append_id, entity_id, partner_user_id, partner_claim_id, stage, created_at
from ledger.claim_list
where partner_id = $1 and stage = $4 and append_id > $2
order by append_id
limit $3

-- name: page_of_partner_entity
-- The same, newest first, of one entity's claims.
select
    claim_id, append_id, entity_id, partner_user_id, partner_claim_id, stage, created_at
from ledger.claim_list
where partner_id = $1 and entity_id = $4 and append_id < $2
order by append_id desc
limit $3

-- name: page_of_partner_entity_oldest
-- The same, oldest first.
select
    claim_id, append_id, entity_id, partner_user_id, partner_claim_id, stage, created_at
from ledger.claim_list
where partner_id = $1 and entity_id = $4 and append_id > $2
order by append_id
limit $3

-- name: page_of_partner_references
-- The same by the partner's reference, of those that begin with a text ($4): from after a reference
-- and, of claims that share it over several entities, a place. No text that begins so is beyond it
-- with the last character of Unicode.
select
    claim_id, append_id, entity_id, partner_user_id, partner_claim_id, stage, created_at
from ledger.claim_list
where
    partner_id = $1
    and partner_claim_id >= $4 and partner_claim_id < $4 || chr(1114111)
    and (partner_claim_id, append_id) > ($5, $2)
order by partner_claim_id, append_id
limit $3

-- name: set_stage
-- Claims moved. Of several moves of one claim the last counts.
update ledger.claim_list as c set stage = moved.stage
from (
    select distinct on (claim_id) claim_id, stage
    from unnest($1::text[], $2::text[]) with ordinality as one (claim_id, stage, nr)
    order by claim_id, nr desc
) as moved
where c.claim_id = moved.claim_id
