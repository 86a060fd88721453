-- What waits for its number: the event, and the position of what has one already.
select p.append_id, e.append_id as event, e.originator_id, e.originator_version, l.position
from ledger.pending as p
left join ledger.events as e on e.append_id = p.append_id
left join ledger.log as l on l.append_id = p.append_id
order by p.append_id
