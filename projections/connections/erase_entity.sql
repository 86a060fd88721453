-- A business's data was erased: nothing in its row names it any more, and nothing finds it.
update ledger.entities as e
set name = gone.marker, email_hash = null, company_number_hash = null
from unnest($1::text[], $2::text[]) as gone (entity_id, marker)
where e.entity_id = gone.entity_id
