-- The log in its order from a position on, each row beside the event that it numbers; nulls where
-- that is gone.
select
    l.position,
    l.append_id,
    l.leaf_hash,
    e.append_id as event,
    e.originator_id,
    e.originator_version,
    e.topic,
    e.state
from ledger.log as l
left join ledger.events as e on e.append_id = l.append_id
where l.position >= $1
order by l.position
