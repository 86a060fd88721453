"""Webhooks: a partner's endpoints, and the events that are sent to them."""
