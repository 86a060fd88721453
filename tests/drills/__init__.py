"""Drills: machines are lost under load, and what is left is compared with what was promised."""
