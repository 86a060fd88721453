"""People: signing in by e-mail, their sessions, and who of them is staff."""
