-- A business finished its onboarding.
update ledger.entities set established = true where entity_id = any($1::text[])
