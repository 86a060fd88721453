-- What the back office finds by its address: a business whose onboarding is open. The others have
-- an index.
create index entities_waiting_by_email on ledger.entities (email_hash) where not established;
