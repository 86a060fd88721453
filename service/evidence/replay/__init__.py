"""Replaying the log as of any moment, and the history of an object."""
