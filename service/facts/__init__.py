"""Facts: every noun's events and the state folded from them. Pure: no I/O."""
