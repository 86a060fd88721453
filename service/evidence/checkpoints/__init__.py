"""Checkpoints: signing, publishing, lineages, and comparing with what was published."""
