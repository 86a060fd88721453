"""The event ledger: sealed events, appended idempotently, numbered after they commit."""
