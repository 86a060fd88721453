"""A service whose webhooks a test delivers by hand."""

import pytest

from tests.ledger.wired import service
from tests.webhooks.setting import Setting

__all__ = ["service"]


@pytest.fixture
def one(service):
    """Return the setting."""
    return Setting(service)
