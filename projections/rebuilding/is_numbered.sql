-- Has every event up to this one a position?
select not exists(select from ledger.pending where append_id <= $1)
