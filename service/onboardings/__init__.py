"""Businesses that partners bring, new to the service."""
