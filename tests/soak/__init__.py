"""Mixed traffic while servers and processes are killed at random, and what is left of it."""
