"""Claims: creating and replaying them, moving them, handing over their first message."""
