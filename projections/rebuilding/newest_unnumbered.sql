-- The last event that has committed and has no position yet; null: every one has.
select max(append_id) from ledger.pending
