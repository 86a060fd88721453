-- A range of the log, each leaf made again from its event: how many there are, the first position
-- that does not hold, and the hashes, joined.
select
    count(*) as events,
    min(l.position) filter (
        where l.leaf_hash is distinct from ledger.leaf_hash(
            l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state
        )
    ) as altered,
    coalesce(string_agg(l.leaf_hash, ''::bytea order by l.position), ''::bytea) as leaves
from ledger.log as l
left join ledger.events as e using (append_id)
where l.position > $1 and l.position <= $2
