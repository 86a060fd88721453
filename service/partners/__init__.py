"""Partner accounts, their settings and their API keys."""
