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
