"""The archive: objects outside the database that are written once."""
