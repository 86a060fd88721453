-- A claim moved.
update ledger.claim_list as c set stage = moved.stage
from unnest($1::text[], $2::text[]) as moved (claim_id, stage)
where c.claim_id = moved.claim_id
