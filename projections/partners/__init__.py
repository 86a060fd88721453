"""Who may call: partners, their settings and their keys (ledger accounts, inline)."""
