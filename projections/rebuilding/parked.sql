-- Positions that a catch-up read model has put aside; its live rows lack them.
select position from ledger.parked where read_model = $1
