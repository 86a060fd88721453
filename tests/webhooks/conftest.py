"""A service whose webhooks a test delivers by hand."""

import pytest

from tests.webhooks.setting import Setting


@pytest.fixture
def one(service):
    """Return the setting."""
    return Setting(service)
