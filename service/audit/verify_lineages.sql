-- The stream in which the log's lineages begin, with positions where it is numbered.
select l.position, e.originator_version, e.topic, e.state
from ledger.events as e
left join ledger.log as l on l.append_id = e.append_id
where e.originator_id = $1
order by e.originator_version
