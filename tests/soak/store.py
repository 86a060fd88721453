"""The document store of a run: the local store in a process of its own, which can be killed."""

import asyncio
import signal
import socket
import subprocess
import sys
from pathlib import Path

from service.cli.dev.gcs.credentials import KEY_FILE, local_credentials
from service.cli.dev.gcs.serving import local_store
from service.core.clock import system_clock
from tests.patience import until
from tests.processes import end, free_port, start

BUCKETS = ("live-documents", "test-documents")
_ROOT = Path(__file__).parents[2]


class DocumentStore:
    """One local store on a free loopback port, which it keeps."""

    def __init__(self, directory: Path) -> None:
        """Draw its credentials; the directory keeps its objects."""
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        local_credentials(directory)
        self._port = free_port()

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a service that keeps its documents here, without their prefix."""
        return {
            "LIVE_BUCKET": BUCKETS[0],
            "TEST_BUCKET": BUCKETS[1],
            "STORAGE_KEY_FILE": str(self._directory / KEY_FILE),
            "STORAGE_ENDPOINT": f"http://127.0.0.1:{self._port}",
        }

    def start(self) -> None:
        """Start it, and wait until it listens."""
        command = [sys.executable, "-m", "tests.soak.store", self._directory, str(self._port)]
        with (self._directory / "log").open("ab") as log:
            self._process = start(
                command, bound_by=signal.SIGKILL, cwd=_ROOT, stdout=log, stderr=log
            )
        until(self._is_up)

    def kill(self) -> None:
        """End it with SIGKILL; do nothing if it is not running."""
        if self._process is not None:
            end(self._process, signal.SIGKILL)
            self._process = None

    def _is_up(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._directory / "log").read_text()[-2000:]
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=1):
                return True
        except OSError:
            return False


async def _serve(directory: Path, port: int) -> None:
    async with local_store(directory, BUCKETS, port=port, clock=system_clock):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), int(sys.argv[2])))
