"""People: signing in by email, their sessions, and who of them is staff."""
