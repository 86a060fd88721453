-- The leaf hashes of a range of the log, in its order.
select leaf_hash from ledger.log where position > $1 and position <= $2 order by position
