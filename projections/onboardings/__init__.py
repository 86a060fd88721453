"""Onboardings and the links that finish them (ledgers live and test, inline)."""
