-- The last position, up to a size, whose event says that it happened at this time or before. Read
-- from the end: clocks of several machines need not agree with the order of the log.
select l.position
from ledger.log as l
join ledger.events as e using (append_id)
where
    l.position <= $2
    and (convert_from(e.state, 'UTF8')::json #>> '{meta,at}')::timestamptz <= $1
order by l.position desc
limit 1
