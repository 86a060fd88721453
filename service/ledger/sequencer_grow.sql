-- A part of the tree of a log that is older than trees; it is the tree once it has every event.
update ledger.head set
    part_size = $1,
    part = $2::bytea,
    tree = case when size = $1 then $2::bytea end
where id = 1
