-- The events at these positions, in order.
select
    l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state, l.leaf_hash
from ledger.log as l
left join ledger.events as e using (append_id)
where l.position = any($1::bigint[])
order by l.position
