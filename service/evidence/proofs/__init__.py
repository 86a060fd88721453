"""Proofs in files of their own: a log continues another, a claim is absent, a history is in it."""
