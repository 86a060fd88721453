"""Which uploads belong to which claim, and what they were (ledgers live and test, inline)."""
