-- What the read models have put aside.
select p.read_model, p.position, p.stream_id, e.topic, p.error, p.parked_at
from ledger.parked as p
join ledger.log as l using (position)
join ledger.events as e using (append_id)
order by p.read_model, p.position
