-- The next events of a stream that a read model has put aside.
select p.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state
from ledger.parked as p
join ledger.log as l using (position)
join ledger.events as e using (append_id)
where p.read_model = $1 and p.stream_id = $2
order by p.position
limit $3
