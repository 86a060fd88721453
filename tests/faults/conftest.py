"""Fixtures of failures: a PostgreSQL to kill and freeze with a service, clusters, mail."""

import signal
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass

import pytest

from service.cli.dev.postgres import EmbeddedPostgres
from service.cli.dev.postgres.processes import send, servers_tagged
from tests.faults.clusters import Clusters, clusters_in
from tests.faults.recorded import recorded
from tests.mail.mail_server import MailServer
from tests.world import Partner, World, settings_for, world_on


@dataclass
class Faulty:
    """A server that can be frozen, killed and revived."""

    server: EmbeddedPostgres

    def freeze(self) -> None:
        """Stop every process: connections stay open, and nothing is answered."""
        send([self.server.postmaster_pid], signal.SIGSTOP)  # first, so that it forks no more
        send(self._processes(), signal.SIGSTOP)

    def thaw(self) -> None:
        """Continue every process."""
        send(self._processes(), signal.SIGCONT)

    def kill(self) -> None:
        """Kill the server: connections are reset, and later ones refused."""
        self.server.shutdown_abruptly()

    def revive(self) -> None:
        """Start it again, on the same port."""
        self.server.start()

    def _processes(self) -> list[int]:
        return servers_tagged(self.server._tag)  # noqa: SLF001 - to be frozen with its children


@pytest.fixture(scope="package")
def faulty(migrated_clusters, tmp_path_factory) -> Iterator[Faulty]:
    """Return a migrated server that the fault tests share; each test leaves it running."""
    # Durable, because what was committed before a kill is counted afterwards.
    with migrated_clusters.server(tmp_path_factory.mktemp("faulty")) as server:
        yield Faulty(server)


@pytest.fixture
async def faulty_world(faulty, tmp_path) -> AsyncGenerator[World, None]:
    """Return a service with long deadlines on the server that will fail; its history is checked."""
    settings = settings_for(faulty.server.url, tmp_path)
    async with world_on(settings, tmp_path) as one, recorded(one):
        yield one


@pytest.fixture
async def partner(faulty_world) -> Partner:
    """Return a partner created before anything fails."""
    return await faulty_world.partner()


@pytest.fixture
def clusters(migrated_clusters, tmp_path) -> Iterator[Clusters]:
    """Return a maker of clusters for this test."""
    with clusters_in(tmp_path, migrated_clusters) as made:
        yield made


@pytest.fixture
async def smtp() -> AsyncGenerator[tuple[MailServer, int], None]:
    """Return a mail server and its port."""
    server = MailServer()
    yield server, await server.start()
    await server.stop()
