"""Exports and receipts: evidence in files, and checking them offline."""
