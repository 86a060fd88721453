"""What partners are told of: their own events, in the log's order (live and test, catch-up)."""
