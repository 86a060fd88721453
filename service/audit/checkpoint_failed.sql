-- The publication was away once more.
update ledger.checkpoint_state set publication_failures = publication_failures + 1
