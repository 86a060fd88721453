"""What others sign of checkpoints, behind their signing: witnesses, and authorities of time."""
