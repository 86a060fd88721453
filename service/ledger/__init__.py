"""The event ledger: encrypted events, appended idempotently, numbered after they commit."""
