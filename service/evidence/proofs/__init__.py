"""Proofs as files: that a log continues another, that a claim is absent, that events are in it."""
