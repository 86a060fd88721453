-- The next events after a position, in the order of the log.
select l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state
from ledger.log as l
join ledger.events as e using (append_id)
where l.position > $1
order by l.position
limit $2
