-- Events after one, in the order of their appending, each with its position if it has one.
select e.append_id, l.position, e.originator_id, e.originator_version, e.topic, e.state
from ledger.events as e
left join ledger.log as l using (append_id)
where e.append_id > $1
order by e.append_id
limit $2
