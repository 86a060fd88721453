"""Fixtures of the contract's tests: one service per module, for tables of many rows."""

from collections.abc import AsyncGenerator

import pytest_asyncio

from tests.document_store import Documents, documents_on
from tests.world import World, settings_for, world_on


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(module_database_url, tmp_path_factory) -> AsyncGenerator[World, None]:
    """Return a running service that the tests of one module share."""
    mail_dir = tmp_path_factory.mktemp("shared") / "mail"
    async with world_on(settings_for(module_database_url, mail_dir), mail_dir) as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def documents(
    module_database_url, tmp_path_factory, store_credentials
) -> AsyncGenerator[Documents, None]:
    """Return a service with a document store that the tests of one module share."""
    directory = tmp_path_factory.mktemp("documents")
    async with documents_on(module_database_url, directory, store_credentials) as one:
        yield one
