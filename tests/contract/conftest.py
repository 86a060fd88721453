"""Fixtures of the contract's tests: one service per module, for tables of many rows.

With `--topology`, requests go through a proxy to an installation of several processes instead
(tests/topology.py): `just topology`, and `just test-citus` with `--citus`. A test marked
`in_process` is left out there.
"""

from collections.abc import AsyncGenerator, Iterator

import httpx
import pytest
import pytest_asyncio

from tests.databases import cloned
from tests.document_store import BUCKETS, Counted, Documents, documents_on, patient_store
from tests.faults.clusters import folder_for_all
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS
from tests.topology import Topology, topology_on
from tests.world import World, settings_for, world_on


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--topology`, leave out what is in-process, and let the rest reach its servers."""
    if not config.getoption("--topology"):
        return
    left_out = [item for item in items if item.get_closest_marker("in_process")]
    for item in items:
        item.add_marker(pytest.mark.server)
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)
    config.stash[LEFT_OUT] = left_out


LEFT_OUT = pytest.StashKey[list[pytest.Item]]()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """List what was left out of a topology, and why."""
    reasons: dict[str, int] = {}
    for item in config.stash.get(LEFT_OUT, []):
        marker = item.get_closest_marker("in_process")
        assert marker is not None
        reasons[marker.args[0]] = reasons.get(marker.args[0], 0) + 1
    for reason, count in reasons.items():
        terminalreporter.write_line(f"in-process, {count}: {reason}")


@pytest.fixture(scope="session")
def topology(request: pytest.FixtureRequest) -> Iterator[Topology | None]:
    """Return the installation that the run goes through; None without `--topology`."""
    if not request.config.getoption("--topology"):
        yield None
        return
    if request.config.getoption("--citus"):
        citus = request.getfixturevalue("citus")
        with folder_for_all() as folder, topology_on(citus.url, folder, citus.urls) as one:
            yield one
        return
    url, template = (request.getfixturevalue(name) for name in ("postgres_url", "template"))
    with (
        folder_for_all() as folder,
        cloned(url, template) as database_url,
        topology_on(database_url, folder) as one,
    ):
        yield one


@pytest.fixture(autouse=True)
def _through_the_topology(topology: Topology | None) -> Iterator[None]:
    """Hold that a test which is not marked `in_process` did go through the installation."""
    before = topology and topology.proxy.requests
    yield
    assert topology is None or topology.proxy.requests > (before or 0), "mark it `in_process`"


@pytest.fixture(scope="module")
def module_database_url(topology: Topology | None, postgres_url, template) -> Iterator[str]:
    """Return the owner's URL of a migrated database that the tests of one module share."""
    if topology:
        yield topology.database_url
        return
    with cloned(postgres_url, template) as url:
        yield url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(
    request: pytest.FixtureRequest,
    topology: Topology | None,
    module_database_url,
    tmp_path_factory,
) -> AsyncGenerator[World, None]:
    """Return a running service that the tests of one module share."""
    if topology:
        async with topology.world() as one:
            yield one
        return
    mail_dir = tmp_path_factory.mktemp("shared") / "mail"
    settings = settings_for(module_database_url, mail_dir)
    async with world_on(settings, mail_dir, follow=_followed(request)) as one:
        yield one


def _followed(request: pytest.FixtureRequest) -> bool:
    """Return whether the module is marked `followed`: if not, nothing follows its log by itself."""
    return request.node.get_closest_marker("followed") is not None


@pytest.fixture(scope="module")
def in_memory(request: pytest.FixtureRequest, topology: Topology | None, in_memory: World) -> World:
    """Return a service for what commands decide: in memory, or the whole installation."""
    return request.getfixturevalue("shared") if topology else in_memory


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def documents(
    request: pytest.FixtureRequest,
    topology: Topology | None,
    module_database_url,
    tmp_path_factory,
    store_credentials,
) -> AsyncGenerator[Documents, None]:
    """Return a service with a document store that the tests of one module share."""
    if topology:
        async with (
            topology.world() as world,
            httpx.AsyncClient(timeout=PATIENCE_SECONDS, verify=NO_TLS) as http,
        ):
            token, endpoint = topology.store.credentials.token, topology.store.endpoint
            read = {mode: patient_store(token, name, endpoint) for mode, name in BUCKETS.items()}
            counted = {mode: Counted(reader) for mode, reader in read.items()}
            yield Documents(world, topology.store, http, counted, topology.listings)
            for reader in read.values():
                reader.close()
        return
    directory = tmp_path_factory.mktemp("documents")
    async with documents_on(
        module_database_url, directory, store_credentials, follow=_followed(request)
    ) as one:
        yield one
