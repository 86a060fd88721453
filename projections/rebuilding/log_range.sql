-- Events between two positions, in the log's order, of the topics asked for; null: of all topics.
-- A range at a time: a cursor over the whole log would hold a snapshot, under which `pending` bloats.
select l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state
from ledger.log as l
join ledger.events as e using (append_id)
where l.position > $1 and l.position <= $2 and ($3::text[] is null or e.topic = any($3::text[]))
order by l.position
