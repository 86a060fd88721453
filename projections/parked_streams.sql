-- Which of these streams have events that a read model has put aside?
select distinct stream_id from ledger.parked where read_model = $1 and stream_id = any($2::uuid[])
