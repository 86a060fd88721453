-- The event at a position.
select e.state from ledger.log as l join ledger.events as e using (append_id) where l.position = $1
