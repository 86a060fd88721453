"""PostgreSQL and Redis from containers, by testcontainers: `--containers`.

Where no Docker answers, or it lacks the images, tests take the servers of this machine instead, and
the run's header says so.
"""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psycopg
from docker import from_env
from docker.errors import DockerException
from testcontainers.community.postgres import PostgresContainer
from testcontainers.core.config import ConnectionMode, testcontainers_config
from testcontainers.core.container import DockerContainer

from tests.databases import on
from tests.patience import PATIENCE_SECONDS, until
from tests.redis_server import RedisServer

POSTGRES = os.environ.get("TESTS_POSTGRES_IMAGE", "postgres:18")
REDIS = os.environ.get("TESTS_REDIS_IMAGE", "redis:8")
SETTINGS = ("fsync=off", "autovacuum=off", "max_connections=200")
"""As the embedded server's of the tests: nothing of it outlives the run."""
PASSWORD = "of-the-tests"
WITHOUT_PASSWORD = ["redis-server", "--save", "", "--protected-mode", "no"]


@cache
def obstacle() -> str | None:
    """Return why there can be no containers; None: there can."""
    if shutil.which("docker") is None:
        return "Docker is not installed"
    try:
        client = from_env()
        tags = {tag for image in client.images.list() for tag in image.tags}
        client.close()
    except DockerException:
        return "no Docker answers"
    wanted = {name if ":" in name else f"{name}:latest" for name in (POSTGRES, REDIS)}
    if lacking := sorted(wanted - tags):
        return f"Docker has no image {', '.join(lacking)}"
    # The daemon is this machine's, also where this process is in a container itself.
    testcontainers_config.connection_mode_override = ConnectionMode.docker_host
    # What ends containers of a run that was killed is an image of its own.
    testcontainers_config.ryuk_disabled = testcontainers_config.ryuk_image not in tags
    return None


@contextmanager
def postgres_in_container() -> Iterator[str]:
    """Yield the URL of an owner who is no superuser, as an installation has it."""
    words = [word for setting in SETTINGS for word in ("-c", setting)]
    container = PostgresContainer(
        POSTGRES, username="postgres", password=PASSWORD, dbname="postgres", driver=None
    ).with_command(["postgres", *words])
    with container as running:
        url = running.get_connection_url(host="127.0.0.1")
        with psycopg.connect(url, autocommit=True) as superuser:
            superuser.execute(
                f"create role claim_ledger login createrole createdb password '{PASSWORD}'"
            )
            superuser.execute("create database claim_ledger owner claim_ledger")
        yield on(url, "claim_ledger").replace("://postgres:", "://claim_ledger:")


class RedisInContainer(RedisServer):
    """A Redis in a container, which can be killed, frozen and restarted like one without."""

    def __init__(self, directory: Path) -> None:
        """Choose the port."""
        super().__init__(directory)
        self.binary = self.binary or "docker"
        self._container: DockerContainer | None = None

    def start(self, *, cluster: bool = False, tls: Path | None = None) -> None:
        """Start it, always on the same port, and wait until it answers."""
        if cluster or tls:  # they name the address that they are reached by: one of this machine
            super().start(cluster=cluster, tls=tls)
            return
        assert self._container is None, "already started"
        container = DockerContainer(REDIS).with_command(WITHOUT_PASSWORD)
        container.ports[6379] = ("127.0.0.1", self.port)  # of loopback alone
        self._container = container.start()
        try:
            until(lambda: self.command("PING") == b"+PONG\r\n")
        except AssertionError:
            self.kill()
            raise

    def pause(self) -> None:
        """Freeze it: connections open, but nothing is answered."""
        self._running.pause()

    def resume(self) -> None:
        """Continue after `pause`."""
        self._running.unpause()

    @property
    def _running(self):
        assert self._container is not None, "not running"
        return self._container.get_wrapped_container()

    def _end(self, number: signal.Signals) -> None:
        if self._container is None:
            super()._end(number)
            return
        container, self._container = self._running, None
        container.reload()
        if container.status == "paused":
            container.unpause()  # a frozen one would not end
        container.kill(number.name)
        container.wait(timeout=PATIENCE_SECONDS)
        container.remove(force=True, v=True)
