-- The first event that neither has a number nor waits for one, and where it stands by the order of
-- appending: before the first position with a greater append_id, or null: behind all of them.
select
    e.append_id,
    (select min(l.position) from ledger.log as l where l.append_id > e.append_id) as position
from ledger.events as e
where
    not exists (select from ledger.log as l where l.append_id = e.append_id)
    and not exists (select from ledger.pending as p where p.append_id = e.append_id)
order by e.append_id nulls first
limit 1
