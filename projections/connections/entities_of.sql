-- The businesses of one e-mail address that use the service, by name.
select entity_id, name from ledger.entities
where established and email_hash = $1
order by name, entity_id
