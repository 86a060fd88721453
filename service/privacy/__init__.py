"""Erasing a person's data, finding where it is, and rotating the master key that protects it."""
