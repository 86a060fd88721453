-- Where each subscriber is, the state of the first event it has not handled (its time is in there),
-- how many streams it has put aside, and whether the log lacks the event that it came to.
select
    s.name,
    s.position,
    (
        select e.state from ledger.log as l
        join ledger.events as e using (append_id)
        where l.position > s.position
        order by l.position
        limit 1
    ) as next,
    (select count(distinct stream_id) from ledger.parked where read_model = s.name) as parked,
    s.position > 0 and not exists(
        select from ledger.log as l
        where l.position = s.position and l.leaf_hash = coalesce(s.leaf_hash, l.leaf_hash)
    ) as is_lost
from ledger.subscriptions as s
order by s.name
