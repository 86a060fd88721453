-- A business's data was erased: its magic link is no credential any more.
update ledger.onboardings set magic_link_hash = null where entity_id = any($1::text[])
