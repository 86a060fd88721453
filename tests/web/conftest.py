"""Parts that the tests of the web layer share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.redis_server import RedisServer


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """Answer a running redis-server that the test may break."""
    server = RedisServer(tmp_path)
    if server.binary is None:
        pytest.skip("redis-server is not installed")
    server.start()
    yield server
    server.stop()
