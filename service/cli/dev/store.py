"""The local store as a process of its own: `python -m service.cli.dev.store DIRECTORY --port PORT`.

It listens on loopback alone. A container that is to reach it shares a network with it, or has a
proxy with TLS in front, as deploy/compose.yaml has.
"""

import asyncio
import signal
from pathlib import Path

import click

from service.cli.dev.gcs.serving import local_store
from service.cli.dev.storage import LIVE_BUCKET, TEST_BUCKET
from service.cli.options import WholeNumber
from service.core import logs
from service.core.clock import system_clock


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--port", type=WholeNumber(1, 65_535), required=True)
@click.option("--bucket", "buckets", multiple=True, default=(LIVE_BUCKET, TEST_BUCKET))
def serve(directory: Path, port: int, buckets: tuple[str, ...]) -> None:
    """Serve the documents that are kept in DIRECTORY, until SIGINT or SIGTERM."""
    logs.configure("info")
    asyncio.run(_serve(directory, port, buckets))


async def _serve(directory: Path, port: int, buckets: tuple[str, ...]) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with local_store(directory, buckets, port=port, clock=system_clock):
        await stopped.wait()


if __name__ == "__main__":
    serve()
