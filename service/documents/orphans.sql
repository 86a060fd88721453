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
