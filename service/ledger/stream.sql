-- One stream, oldest first, with the data key of its subject where the events need it.
select e.append_id, e.originator_version, e.topic, e.state
from ledger.events as e
where e.originator_id = $1
order by e.originator_version
