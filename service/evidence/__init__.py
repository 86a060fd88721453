"""Evidence: checkpoints of the log, verifying, exporting and replaying it."""
