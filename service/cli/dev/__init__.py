"""`claim-ledger dev`: everything embedded, for trying the service and building against it."""
