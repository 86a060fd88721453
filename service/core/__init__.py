"""What everything stands on: clock, ids, errors, logs, loops."""
