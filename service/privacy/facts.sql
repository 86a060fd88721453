-- What an erasure decides on: how a subject's stream began, how long it is, whether it says already
-- that the subject was erased. No row's box is opened for it.
select
    first.topic, first.state,
    (select max(originator_version) from ledger.events where originator_id = $1) as version,
    (
        select state from ledger.events
        where originator_id = $1 and topic = 'PersonalDataErased'
        order by originator_version limit 1
    ) as erased
from ledger.events as first
where first.originator_id = $1 and first.originator_version = 1
