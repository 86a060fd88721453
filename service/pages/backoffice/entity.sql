-- One business.
select entity_id, name, established, registered_at from ledger.entities where entity_id = $1
