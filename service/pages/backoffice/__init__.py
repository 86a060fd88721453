"""The back office: what the service's team sees and does."""
