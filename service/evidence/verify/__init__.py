"""Verifying a ledger: every row, hash, checkpoint and lineage."""
