-- A range of the log with its events, in order; an event that is gone leaves nulls.
select
    l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state, l.leaf_hash
from ledger.log as l
left join ledger.events as e using (append_id)
where l.position > $1 and l.position <= $2
order by l.position
