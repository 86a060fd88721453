"""Rebuilding a read model under traffic: shadow tables, comparing, swapping."""
