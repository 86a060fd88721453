import asyncio
import socket
from contextlib import ExitStack

import pytest
from structlog.testing import capture_logs

from service.cli.dev.gcs.disk import LocalStoreError
from service.cli.dev.gcs.serving import local_store
from service.core.clock import system_clock
from tests.patience import waiting
from tests.processes import free_port
from tests.storage.local import BUCKET, Served

pytestmark = pytest.mark.server


def store(directory, **settings):
    """Return a store that is not yet served."""
    given = {"port": free_port(), "clock": system_clock} | settings
    return local_store(directory, [BUCKET], **given)


async def test_the_log_warns_of_a_development_store(tmp_path):
    """Its log warns that it is for development."""
    with capture_logs() as lines:
        async with store(tmp_path):
            pass
    assert [line["event"] for line in lines] == [
        "a document store for development is serving on loopback"
    ]


async def test_a_taken_port_is_one_clear_error(tmp_path):
    """It does not wait for the port, and releases the directory."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LocalStoreError, match=f"port {port}"):
            async with store(tmp_path, port=port):
                pytest.fail("it started")
    async with store(tmp_path):
        pass


async def test_a_directory_has_one_store(served: Served):
    """A second store on a directory in use does not start."""
    with pytest.raises(LocalStoreError, match="in use"):
        async with store(served.directory):
            pytest.fail("it started")


async def test_it_stops_while_requests_are_under_way(tmp_path):
    """An endless upload does not delay the end."""
    with ExitStack() as end:
        async with store(tmp_path) as running:
            port = int(running.endpoint.rpartition(":")[2])
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"PUT /a/b HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\nx")
            await writer.drain()
            waited = end.enter_context(waiting())  # what it does from here on is to stop
        assert waited() < 3
    writer.close()
