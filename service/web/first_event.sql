-- The state of a log's first event (its time is in there); no row where nothing has a position.
select e.state from ledger.log as l join ledger.events as e using (append_id) where l.position = 1
