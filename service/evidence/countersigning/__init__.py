"""Signatures of others on checkpoints, after ours: of witnesses and time-stamping authorities."""
