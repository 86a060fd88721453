-- Erasing a person from a ledger that partners write to.

-- The link of a document to an erased claim stays as a fact; its object has gone, or is to go.
alter table ledger.claim_documents add column erased boolean not null default false;

-- What an erasure looks up: an entity's partners, onboardings and links, a claim's uploads.
create index connections_of_entity on ledger.connections (entity_id);
create index onboardings_of_entity on ledger.onboardings (entity_id);
create index connect_links_of_entity on ledger.connect_links (entity_id)
where entity_id is not null;
create index uploads_of_claim on ledger.uploads (claim_stream);
