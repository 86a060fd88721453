-- Is this address staff?
select staff_id from ledger.staff where address_hash = $1 and removed_at is null
