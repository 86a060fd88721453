-- The businesses of an address, by its keyed hash: those that use the service, and those whose
-- onboarding is open. Two conditions, because each has an index.
select 'entity' as kind, entity_id as id, 'established' as state, entity_id, name
from ledger.entities where established and email_hash = $1
union all
select 'entity', entity_id, 'onboarding', entity_id, name
from ledger.entities where not established and email_hash = $1
order by id
