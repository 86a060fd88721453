-- How many streams and events a read model has put aside.
select count(distinct stream_id) as streams, count(*) as events
from ledger.parked
where read_model = $1
