-- name: context
-- What checking documents decides on, before the claim's transaction: the entity and the partner's
-- connection, whether the claim exists, and which of the paths were minted for it. One round trip.
select
    e.entity_id, e.name, e.established, c.version, c.connected_at, c.disconnected_at,
    exists(
        select from ledger.events where originator_id = $3 and originator_version = 1
    ) as made,
    array(
        select storage_path from ledger.uploads
        where storage_path = any($4::text[]) and claim_stream = $3 and swept_at is null
    ) as minted
from (values (1)) as one (nr)
left join ledger.entities as e on e.entity_id = $2
left join ledger.connections as c on c.entity_id = $2 and c.partner_id = $1

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

-- name: mint
-- A path was minted.
insert into ledger.uploads (storage_path, claim_stream, mime_type, max_bytes, minted_at)
values ($1, $2, $3, $4, $5)

-- name: orphans
-- Uploads that no claim refers to, or an erased one, and that are older than a moment, or that an
-- earlier sweep has not finished, in the order of their paths.
select u.storage_path, u.claim_stream
from ledger.uploads as u
where
    (u.minted_at < $1 or u.swept_at is not null) and u.storage_path > $2
    and not exists(
        select from ledger.claim_documents as d
        where d.storage_path = u.storage_path and not d.erased
    )
order by u.storage_path
limit $3

-- name: orphans_count
-- How many uploads a sweep would look at.
select count(*) as orphans
from ledger.uploads as u
where
    (u.minted_at < $1 or u.swept_at is not null)
    and not exists(
        select from ledger.claim_documents as d
        where d.storage_path = u.storage_path and not d.erased
    )
