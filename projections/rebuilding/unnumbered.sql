-- Committed events that have no position yet, in the order in which they will get one.
select 0::bigint as position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state
from ledger.pending as p
join ledger.events as e using (append_id)
where $1::text[] is null or e.topic = any($1::text[])
order by e.append_id
