-- One claim.
select * from ledger.claim_list where claim_id = $1
