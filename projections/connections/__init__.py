"""Entities, and which partner each is connected to (ledgers live and test, inline)."""
