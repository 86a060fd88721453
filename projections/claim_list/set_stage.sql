-- Claims moved. Of several moves of one claim the last counts.
update ledger.claim_list as c set stage = moved.stage
from (
    select distinct on (claim_id) claim_id, stage
    from unnest($1::text[], $2::text[]) with ordinality as one (claim_id, stage, nr)
    order by claim_id, nr desc
) as moved
where c.claim_id = moved.claim_id
