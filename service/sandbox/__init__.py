"""The sandbox: its triggers, its fixture entities, and what a partner does with it."""
