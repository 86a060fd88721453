"""Fixtures: a wired service without its background tasks, and its ledger of accounts."""

from collections.abc import AsyncGenerator

import pytest

from service.app.bootstrap import Service
from tests.world import PATIENCE_SECONDS, settings_for


@pytest.fixture
async def service(database_url, tmp_path) -> AsyncGenerator[Service, None]:
    """Return the parts, on a database of the test's own."""
    async with Service(
        settings_for(database_url, tmp_path), deadline_seconds=PATIENCE_SECONDS
    ).opened() as one:
        yield one


@pytest.fixture
def accounts(service):
    """Return the ledger of accounts: its events need no entity."""
    return service.accounts
