"""Connect links and what became of them (ledgers live and test, inline)."""
