-- How many uploads a sweep would look at.
select count(*) as orphans
from ledger.uploads as u
where
    (u.minted_at < $1 or u.swept_at is not null)
    and not exists(
        select from ledger.claim_documents as d
        where d.storage_path = u.storage_path and not d.erased
    )
