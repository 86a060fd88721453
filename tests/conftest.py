"""PostgreSQL for the tests: one server a test process, one database a test."""

import asyncio
import importlib
import logging
import os
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio
import uvloop
from hypothesis import HealthCheck, settings
from xdist import is_xdist_worker
from xdist.remote import Producer

from service.app.bootstrap import Service
from service.cli.dev.gcs.credentials import local_credentials
from service.core.garbage import collector_paused, leave_out_what_is_there
from tests.chosen_postgres import DEBIAN, WHEEL, bin_dir_of
from tests.databases import TEMPLATE, cloned, migrated_with_template, on, run
from tests.document_store import Documents, documents_on
from tests.evidence.sealed_log import sealed
from tests.log_lines import log_plainly
from tests.memory_ledger import memory_world
from tests.migrated_clusters import MigratedClusters
from tests.processes import ended
from tests.redis_server import RedisServer
from tests.scratch import scratch_directory
from tests.shared_scopes import SharingFiles
from tests.world import World, service_on, settings_for, world_on

__all__ = ["sealed"]

# How long an example takes says nothing: other tests share the machine.
settings.register_profile(
    "shared",
    parent=settings(),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("shared")

BY_THE_TESTS_ALONE = {"autovacuum": "off"}
"""A vacuum of PostgreSQL's own would meet the dropping of a database, which its owner, who is no
superuser, may not end: the drop is refused."""


SERVERS = {"migrated_clusters", "postgres_url", "citus", "redis_server", "browser"}
"""Fixtures that start a server: what asks for one, by whatever way, is marked `server`. Modules
that start one by themselves say so with `pytestmark`, …"""
OF_SERVERS = {"cli", "dev", "faults"}
"""… but for these folders, in which nothing does without."""


PREPARED = ("sealed", "told_history", "signed_live")
"""Databases that are prepared once in a process, for tests that ask for them by whatever way."""


LONGEST = (
    "faults/test_soak.py",
    "dev/test_dev.py",
    "contract/test_schemathesis.py",
    "faults/test_point_in_time.py",
    "faults/test_sequencers.py",
    "evidence/test_mutations.py",
    "cli/test_team.py",
    "cli/test_privacy.py",
    "cli/test_serve.py",
    "dev/test_storage.py",
    "evidence/test_second_verifier.py",
    "faults/test_storage.py",
    "faults/test_postgres_gone.py",
    "ledger/test_races.py",
    "projections/test_rebuild.py",
    "cli/test_audit_export.py",
    "cli/test_projections.py",
)
"""The files that take longest, which are begun first: what comes last should be short, so that
neither of two processes waits long for the other. A file of the pages comes before them all."""


def pytest_asyncio_loop_factories(item: pytest.Function) -> dict[str, Any]:
    """Run tests on the service's event loop, which also takes less time.

    Only Python's own loop tells how long it has waited (`waiting` of tests/patience.py).
    """
    if hasattr(item.module, "waiting"):
        return {"asyncio": asyncio.new_event_loop}
    return {"uvloop": uvloop.new_event_loop}


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SharingFiles | None:
    """Return the scheduler of `--dist loadfile`."""
    return SharingFiles(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `--postgres` choose the server that the tests run on."""
    parser.addoption(
        "--postgres",
        metavar="BUILD",
        default=WHEEL,
        help=f"{WHEEL}: the wheel's; {DEBIAN}: Debian's; or the folder of another one's programs",
    )
    parser.addoption(
        "--containers",
        action="store_true",
        default=os.environ.get("TESTS_CONTAINERS") == "on",
        help="PostgreSQL and Redis from containers, where Docker answers and has their images",
    )
    parser.addoption(
        "--topology",
        action="store_true",
        help="run tests/contract through a proxy to an installation of several processes",
    )
    parser.addoption(
        "--citus",
        metavar="PG_BIN",
        help="programs of a PostgreSQL with Citus: the topology's ledgers have nodes of their own",
    )


def containers() -> Any:
    """Return the module of containers, which is slow to import: only where it is asked for."""
    return importlib.import_module("tests.containers")


def in_containers(config: pytest.Config) -> bool:
    """Return whether PostgreSQL and Redis come from containers."""
    return config.getoption("--containers") and containers().obstacle() is None


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say where PostgreSQL and Redis come from, if containers are asked for."""
    if not config.getoption("--containers"):
        return []
    obstacle = containers().obstacle()
    return [f"containers: {f'none, {obstacle}' if obstacle else 'PostgreSQL and Redis'}"]


def pytest_configure(config: pytest.Config) -> None:
    """Keep the run's files in memory; processes that xdist starts inherit where."""
    log_plainly()
    # No server of the tests has TLS whose URL does not ask for it, and asking takes a seventh of a
    # connection's time.
    os.environ.setdefault("PGSSLMODE", "disable")
    if not hasattr(config, "workerinput"):
        ending = ExitStack()
        ending.enter_context(scratch_directory())
        config.add_cleanup(ending.close)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a server, so that the rest can be run in seconds; begin with the longest."""
    root = Path(__file__).parent
    ranks = {root / name: rank for rank, name in enumerate(LONGEST)}
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if not SERVERS.isdisjoint(fixtures) or not OF_SERVERS.isdisjoint(item.path.parts):
            item.add_marker(pytest.mark.server)
    items.sort(
        key=lambda item: (
            "browser" not in getattr(item, "fixturenames", ()),
            ranks.get(item.path, len(ranks)),
        )
    )


@pytest.fixture(autouse=True)
def _no_sockets_without_a_server(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hold that a test which is not marked `server` reaches nobody, and starts nothing."""
    if request.node.get_closest_marker("server") is not None:
        return

    def refuse(*_args: object, **_more: object) -> None:
        raise AssertionError("this needs `pytestmark = pytest.mark.server`")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.socket.bind", refuse)
    monkeypatch.setattr("subprocess.Popen.__init__", refuse)


@pytest.fixture(autouse=True)
def processes_end_with_their_test() -> Iterator[None]:
    """Kill what a test or one of its own fixtures started and did not end."""
    with ended():
        yield


@pytest.fixture(autouse=True)
def granian_logs_as_we_do() -> Iterator[None]:
    """Hold that no test has Granian print lines of its own for the tests after it."""
    yield
    for name in ("_granian", "granian.access"):
        granian = logging.getLogger(name)
        assert (granian.handlers, granian.propagate) == ([], True)


@pytest.fixture(scope="session")
def migrated_clusters(request, tmp_path_factory) -> MigratedClusters:
    """Return what makes migrated servers of a test's own, of the version that is tested."""
    own = tmp_path_factory.getbasetemp()
    home = own.parent if is_xdist_worker(request) else own
    return MigratedClusters(home, bin_dir_of(request.config))


@pytest.fixture(scope="session")
def postgres_url(request, tmp_path_factory) -> Iterator[str]:
    """Return the owner's URL of a PostgreSQL server of this test process's own."""
    if in_containers(request.config):
        with containers().postgres_in_container() as url:
            migrated_with_template(url)
            yield url
        return
    clusters: MigratedClusters = request.getfixturevalue("migrated_clusters")
    # Commits are not flushed, but they are in PostgreSQL's hands when they are answered: a test
    # that kills a backend loses nothing.
    with clusters.server(
        tmp_path_factory.mktemp("postgres"),
        settings=BY_THE_TESTS_ALONE | clusters.quick,
        durable=False,
    ) as server:
        yield server.url


@pytest.fixture(scope="session")
def citus(request) -> Iterator[Any]:
    """Return a Citus cluster with the ledgers on different nodes, where there is a build of it."""
    bin_dir = request.config.getoption("--citus")
    if not bin_dir:
        pytest.skip("no build of Citus is given: `just test-citus PG_BIN`")
    clusters = importlib.import_module("tests.citus.cluster")
    with clusters.citus_in(Path(bin_dir)) as one:
        yield one


@pytest.fixture(scope="session")
def template(postgres_url) -> str:
    """Return the name of a migrated database to clone.

    The first session of a database leaves a file of its catalogs to those after it: a clone has it
    from here, and its own first session takes half.
    """
    run(on(postgres_url, TEMPLATE), "select")
    return TEMPLATE


@pytest.fixture
def database_url(request, postgres_url, template) -> Iterator[str]:
    """Return the owner's URL of a database of this test's own, a clone of what it asks for."""
    asked = [name for name in PREPARED if name in request.fixturenames]
    name = request.getfixturevalue(asked[0])[0] if asked else template
    with cloned(postgres_url, name) as url:
        yield url


@pytest.fixture
def owner(database_url) -> Iterator[psycopg.Connection]:
    """Return a connection of the database's owner, each statement its own transaction."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def module_database_url(postgres_url, template) -> Iterator[str]:
    """Return the owner's URL of a migrated database that the tests of one module share."""
    with cloned(postgres_url, template) as url:
        yield url


@pytest.fixture
def module_owner(module_database_url) -> Iterator[psycopg.Connection]:
    """Return a connection of the owner of a database that the tests of one module share."""
    with psycopg.connect(module_database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def followed(request) -> bool:
    """Return whether the test is marked `followed`: if not, nothing follows its log by itself."""
    return request.node.get_closest_marker("followed") is not None


@pytest.fixture
async def world(database_url, tmp_path, followed) -> AsyncGenerator[World, None]:
    """Return a running service of this test's own."""
    mail_dir = tmp_path / "mail"
    async with world_on(settings_for(database_url, mail_dir), mail_dir, follow=followed) as one:
        yield one


@pytest.fixture
async def service(database_url, tmp_path) -> AsyncGenerator[Service, None]:
    """Return the parts of a service, without its background tasks."""
    async with service_on(settings_for(database_url, tmp_path)) as one:
        yield one


@pytest.fixture
def accounts(service):
    """Return the ledger of accounts: its events need no entity."""
    return service.accounts


@pytest.fixture
async def documents(
    database_url, tmp_path, store_credentials, followed
) -> AsyncGenerator[Documents, None]:
    """Return a running service with a local document store."""
    async with documents_on(database_url, tmp_path, store_credentials, follow=followed) as one:
        yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(module_database_url, tmp_path_factory) -> AsyncGenerator[World, None]:
    """Return a running service that the tests of one module share, and none of them changes.

    The module says `pytestmark = pytest.mark.asyncio(loop_scope="module")`.
    """
    mail_dir = tmp_path_factory.mktemp("shared") / "mail"
    async with world_on(settings_for(module_database_url, mail_dir), mail_dir) as one:
        yield one


@pytest.fixture(scope="session")
def in_memory(tmp_path_factory) -> World:
    """Return a service in memory that all tests share, for what commands decide."""
    return memory_world(tmp_path_factory.mktemp("in_memory"))


@pytest.fixture(scope="session")
def store_credentials(tmp_path_factory) -> Path:
    """Return a directory with a local store's credentials, which take a moment to draw."""
    directory = tmp_path_factory.mktemp("credentials")
    local_credentials(directory)
    return directory


@pytest.fixture
def redis_server(request, tmp_path) -> Iterator[RedisServer]:
    """Return a running redis-server that the test may break."""
    inside = in_containers(request.config)
    server = containers().RedisInContainer(tmp_path) if inside else RedisServer(tmp_path)
    if server.binary is None:
        pytest.skip("redis-server is not installed")
    server.start()
    yield server
    server.stop()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage meanwhile: whatever imports make stays, and would be walked each time."""
    with collector_paused():
        return (yield)


def pytest_collection_finish() -> None:
    """Look for garbage as `serve` does: seldom, and never among what collecting made."""
    leave_out_what_is_there()
