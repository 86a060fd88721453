-- What the sequencer goes on from; one row, unless somebody made it otherwise. And how many rows of
-- the log have no position at all, which reading it in order does not meet.
select
    h.id,
    h.size,
    h.tree,
    (select count(*) from ledger.log as l where l.position is null) as unplaced
from ledger.head as h
