"""Businesses that the service acts for."""
