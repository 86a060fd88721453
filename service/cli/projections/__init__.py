"""`claim-ledger projections`: read models, and rebuilding them from the log."""
