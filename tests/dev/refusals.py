"""What a start that is refused says."""

import pytest

from service.cli.dev.postgres import (
    EmbeddedPostgres,
    EmbeddedPostgresError,
)


def refused(server: EmbeddedPostgres) -> str:
    """Return the one line that a refused start raises."""
    with pytest.raises(EmbeddedPostgresError) as caught:
        server.start()
    assert "\n" not in str(caught.value)
    return str(caught.value)
