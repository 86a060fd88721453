-- name: establish_again
-- A business whose row was made again by the event that registered it uses the service if an onboarding
-- of it was finished: that event is of another stream, and was not set aside with it.
update ledger.entities as e set established = true
where e.entity_id = $1
and exists(select from ledger.onboardings as o where o.entity_id = e.entity_id and o.state = 'completed')

-- name: findings
-- What passes have found beside the log's hashes, and the MAC of each, which does not hold where a column
-- is longer than what the service writes: nothing is read of it.
select
    kind, position, seen, faults, fault_position,
    case when octet_length(fault) > 4096 then '' else fault end as fault,
    case when octet_length(mac) > 64 then ''::bytea else mac end as mac
from ledger.log_findings
order by kind

-- name: last_version
-- The last version of a stream, whoever wrote it; 0 where there is none.
select coalesce(max(originator_version), 0) as version from ledger.events where originator_id = $1

-- name: newest_unbound
-- Those of the newest thousand events that have no MAC, or one of a key before this one.
select newest.state, newest.mac is not null as has_mac
from (select append_id, state, mac from ledger.events order by append_id desc limit 1000) as newest
where newest.mac is null or substring(newest.mac from 1 for 1) < $1::bytea
order by newest.append_id desc
limit 10

-- name: note_finding
-- Keeps what was found of a kind, and how far a pass has looked.
update ledger.log_findings set
    position = $2, seen = $3, faults = $4, fault_position = $5, fault = $6, mac = $7
where kind = $1

-- name: open_transactions
-- Transactions that have written, or prepared to, by logins that may use the schema ($1): an id that none
-- other has, what to call each, and its login. Those that began by a time ($2), if one is given. When one
-- began that was prepared is not known.
select
    a.backend_xid::text as xid, 'the transaction of backend ' || a.pid as holder,
    a.usename::text as login
from pg_stat_activity as a
where
    a.datname = current_database() and a.backend_xid is not null
    and a.pid <> pg_backend_pid()
    and has_schema_privilege(a.usesysid, $1::text, 'usage')
    and ($2::timestamptz is null or a.xact_start <= $2)
union all
select p.transaction::text, 'the prepared transaction ' || p.gid, p.owner::text
from pg_prepared_xacts as p
where p.database = current_database() and has_schema_privilege(p.owner, $1::text, 'usage')

-- name: set_aside
-- What was set aside last, at most $2, or under an id: the event's columns, and what its MAC is of.
select
    s.id, s.set_aside_at, s.reason, s.append_id, s.originator_id, s.originator_version, s.topic,
    ledger.event_digest(s.originator_id, s.originator_version, s.topic, s.state) as digest,
    case when octet_length(s.mac) > 64 then ''::bytea else s.mac end as mac
from ledger.set_aside as s
where s.id = coalesce($1::bigint, s.id)
order by s.id desc
limit $2

-- name: taken_back
-- Which of these streams ($1) say that an event was taken back, in at most $2 bytes; with their MACs.
select
    0 as position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state, e.mac
from ledger.events as e
where e.originator_id = any($1::uuid[]) and e.originator_version = 1 and octet_length(e.state) <= $2

-- name: take_back
-- Writes an event that was set aside again, as it was, with its MAC; and what it says.
select w.append_ids, s.state
from ledger.set_aside as s
cross join lateral ledger.write(
    1, '{}', '{}', '{}', '{}', '{}', '{}', '{}',
    array[s.originator_id], array[s.originator_version], array[s.topic], array[s.state],
    array[s.mac], array[1], '{}', '{}', '{}', '{}', '{}', '{}'
) as w
where s.id = $1
