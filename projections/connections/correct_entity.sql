-- People corrected what was said of their businesses. Of several corrections the last counts.
update ledger.entities as e set name = last.name, company_number_hash = last.number
from (
    select distinct on (entity_id) entity_id, name, number
    from unnest($1::text[], $2::text[], $3::bytea[]) with ordinality as one (entity_id, name, number, nr)
    order by entity_id, nr desc
) as last
where e.entity_id = last.entity_id
