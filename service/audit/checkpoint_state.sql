-- How checkpoints of this ledger fare: the last one's size and time, and what is wrong.
select s.forked, s.publication_failures, c.size, c.made_at
from ledger.checkpoint_state as s
left join (
    select size, made_at from ledger.checkpoints order by made_at desc limit 1
) as c on true
