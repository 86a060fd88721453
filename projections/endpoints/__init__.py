"""Webhook endpoints as senders and the console read them (ledger accounts, inline)."""
