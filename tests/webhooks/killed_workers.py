"""A worker as a separate process, killed at random while it delivers, again and again.

The parent never touches the database: it forks a worker, kills it with SIGKILL at a random time
after it is up, and forks the next one.
Run as `python -m tests.webhooks.killed_workers DATABASE_URL DIRECTORY KILLS`.
"""

import asyncio
import mmap
import os
import random
import signal
import sys
import time
from pathlib import Path

from service.app.background import background
from service.app.bootstrap import Service
from service.core import logs
from service.mail.transport import mail_transport
from service.webhooks.deliveries import Deliveries
from tests.patience import PATIENCE_SECONDS
from tests.processes import die_with_parent
from tests.world import settings_for

LIFE_SECONDS_MAX = 0.6
LEASE_SECONDS = 2.0
"""Instead of half a minute, so that what was cut off comes again soon."""


def local_settings(url: str, directory: Path):
    """Return settings under which webhooks may go to this machine."""
    given = {"PUBLIC_URL": "http://127.0.0.1:8000", "PRIVATE_WEBHOOKS": "on"}
    return settings_for(url, directory, **given)


async def work(url: str, directory: Path, up: mmap.mmap) -> None:
    """Do what a worker does, until the end of the process."""
    service = Service(local_settings(url, directory), deadline_seconds=PATIENCE_SECONDS)
    async with service.opened():
        background(service, mail_transport(service.settings.smtp_url)).start()
        up[0] = 1
        await asyncio.Event().wait()


def main(url: str, directory: Path, kills: int) -> None:
    """Kill workers so many times."""
    logs.configure("error", sys.stderr.buffer)
    Deliveries.lease_seconds = LEASE_SECONDS
    up = mmap.mmap(-1, 1)
    for _ in range(kills):
        up[0] = 0
        pid = os.fork()
        if pid == 0:
            die_with_parent()
            try:
                asyncio.run(work(url, directory, up))
            finally:
                os._exit(1)
        while not up[0]:
            if os.waitpid(pid, os.WNOHANG)[0]:
                raise SystemExit("a worker ended by itself")
            time.sleep(0.001)
        time.sleep(random.uniform(0, LIFE_SECONDS_MAX))  # noqa: S311 - no secret
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            raise SystemExit(f"a worker ended by itself: {status}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
