"""From the log to the mail server."""
