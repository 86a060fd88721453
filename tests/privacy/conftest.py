"""A service with documents and an erasure list, and people with personal data."""

from collections.abc import AsyncGenerator

import pytest

from tests.document_store import documents_on
from tests.privacy.team import Privacy


@pytest.fixture
async def privacy(
    database_url, tmp_path, store_credentials, followed
) -> AsyncGenerator[Privacy, None]:
    """Return the team's side of a running service."""
    published = tmp_path / "published"
    published.mkdir()
    given = {"ARCHIVE_URL": published.as_uri()}
    async with documents_on(
        database_url, tmp_path, store_credentials, follow=followed, **given
    ) as documents:
        yield Privacy(documents, published)
