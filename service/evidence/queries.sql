-- name: last_version
-- The last version of a stream, whoever wrote it; 0 where there is none.
select coalesce(max(originator_version), 0) as version from ledger.events where originator_id = $1

-- name: newest_unbound
-- Those of the newest thousand events that have no MAC.
select newest.state
from (select append_id, state, mac from ledger.events order by append_id desc limit 1000) as newest
where newest.mac is null
order by newest.append_id desc
limit 10
