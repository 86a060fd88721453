"""Who belongs to the service's team (ledger accounts, inline)."""
