-- The next positions after one, in the log's order, with the events of the topics asked for: the
-- checkpoint passes over the others unread. $4, if not null, are all topics that we know: those that
-- we do not are then among the events too.
with batch as (
    select position, append_id from ledger.log where position > $1 order by position limit $2
)
select b.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state
from batch as b
left join ledger.events as e
on e.append_id = b.append_id and (e.topic = any($3::text[]) or e.topic <> all($4::text[]))
order by b.position
