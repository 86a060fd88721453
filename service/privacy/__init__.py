"""Erasing a person's data, telling where it is, and wrapping the keys that seal it anew."""
