"""Following the log: the runner, catch-up read models, parked events, progress."""
