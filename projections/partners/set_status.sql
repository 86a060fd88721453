-- Partners were approved, declined or revoked. Of several facts about one the last counts.
update ledger.partners as p set status = changed.status
from (
    select distinct on (partner_id) partner_id, status
    from unnest($1::text[], $2::text[]) with ordinality as one (partner_id, status, nr)
    order by partner_id, nr desc
) as changed
where p.partner_id = changed.partner_id
