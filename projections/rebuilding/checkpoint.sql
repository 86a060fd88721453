-- How far a catch-up read model has come; no further than the log, which may have been cut.
select least(s.position, h.size) as position
from ledger.subscriptions as s, ledger.head as h
where s.name = $1 and h.id = 1
