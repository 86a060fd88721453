-- The keyed hash of the address by which a business's person signs in.
select email_hash from ledger.entities where entity_id = $1
