-- The streams that begin as a claim's, by events alone. States are searched as bytes, so that none can
-- stop it.
select e.originator_id
from ledger.events as e
where
    e.topic = 'ClaimCreated' and e.originator_version = 1
    and substring(encode(e.state, 'escape') from '"claim_id":"([^"]*)"') = $1::text
order by e.append_id
