-- The same, held: no worker projects for it until the transaction ends.
select least(s.position, h.size) as position
from ledger.subscriptions as s, ledger.head as h
where s.name = $1 and h.id = 1
for update of s
