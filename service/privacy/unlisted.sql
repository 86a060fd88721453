-- How many subjects were erased by the log whom the erasure list does not name: neither their streams,
-- nor their claims. A link is none of its own: it may have been redeemed after its entity's erasure
-- was listed.
select count(*) as subjects
from ledger.events as e
join ledger.events as first using (originator_id)
where
    e.topic = 'PersonalDataErased'
    and first.originator_version = 1
    and first.topic <> 'ConnectLinkIssued'
    and e.originator_id not in (select unnest($1::uuid[]))
    and e.originator_id not in (
        select stream_id from ledger.claim_list where claim_id = any($2::text[])
    )
