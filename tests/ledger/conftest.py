"""A wired service without its background tasks: tests number and follow the log by hand."""

from tests.ledger.wired import accounts, service

__all__ = ["accounts", "service"]
