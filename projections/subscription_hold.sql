-- The checkpoint, held until the end of the transaction; no row while another process holds it.
-- `is_lost`: the log does not have the event that the checkpoint came to.
select
    s.position,
    s.position > 0 and not exists(
        select from ledger.log as l
        where l.position = s.position and l.leaf_hash = coalesce(s.leaf_hash, l.leaf_hash)
    ) as is_lost
from ledger.subscriptions as s
where s.name = $1
for update of s skip locked
