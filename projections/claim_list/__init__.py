"""The claims that partners created, newest first (ledgers live and test, inline)."""
