-- A claim's stream so far, oldest first; the position is null where an event is not numbered yet.
select
    l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state, l.leaf_hash
from ledger.events as e
left join ledger.log as l using (append_id)
where e.originator_id = $1
order by e.originator_version
