-- The positions of a range of the log, in order, and the topic of each; null where its event is gone.
select l.position, e.topic
from ledger.log as l
left join ledger.events as e using (append_id)
where l.position > $1 and l.position <= $2
order by l.position
