"""Collectors: figures that a scrape reads from the database, the log and the archive."""
