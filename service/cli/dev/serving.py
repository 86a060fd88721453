"""The service and the document store of `claim-ledger dev`, in the process that holds PostgreSQL.

The store keeps its port over restarts.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from socket import socket
from typing import Final

import uvloop

from migrations import is_newest, migrate
from service.app.background import background
from service.app.bootstrap import Service
from service.app.settings import Settings
from service.app.storage import storage_for
from service.app.web import web_app
from service.cli.dev.embedded import embedded_server
from service.cli.dev.faults import DevFault
from service.cli.dev.gcs.serving import local_store
from service.cli.dev.ports import free_port, port_of
from service.cli.dev.seed import seed
from service.cli.dev.signals import StopSignals, parent_to_watch
from service.cli.dev.state import (
    FACTS,
    SECRETS,
    Announce,
    DevState,
    Facts,
    kept_secrets,
    write_private,
)
from service.cli.dev.storage import LIVE_BUCKET, PORT_FILE, TEST_BUCKET, storage_directory
from service.core.clock import system_clock
from service.http.connections import ConnectionWatch, allow_files
from service.mail.transport import mail_transport
from service.operations.metrics import Metrics
from service.partner_api.gate import API_PATH
from service.sandbox.fixtures import fixture_ids

SEEDING_SECONDS: Final = 60.0
"""For each operation of the demonstration's data: no client waits for it, as for a request's, and a
database that has just begun on a busy machine takes longer than a request may."""


def serve(
    state: DevState,
    held: socket,
    environment: Mapping[str, str],
    announce: Announce,
    signals: StopSignals,
) -> None:
    """Migrate, seed what is missing, and serve until a signal; raises DevFault.

    `held` is closed just before the server listens on its port.
    """
    allow_files()
    if not is_newest(state.database_url):
        migrate(state.database_url, state.ledger_urls)
    signals.check()

    async def main() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None  # noqa: S101 - inside a task
        signals.on_stop(lambda: loop.call_soon_threadsafe(task.cancel))
        parent = parent_to_watch()
        if parent is not None:
            loop.add_reader(parent, task.cancel)
        async with _serving_documents(state.data_dir, port_of(held)) as storage_url:
            await _serve(state, held, environment, lambda facts: announce(facts, storage_url))

    with suppress(asyncio.CancelledError), asyncio.Runner(loop_factory=uvloop.new_event_loop) as on:
        on.run(main())


async def _serve(
    state: DevState, held: socket, environment: Mapping[str, str], announce: Callable[[Facts], None]
) -> None:
    settings = state.settings(dict(environment))
    seeded = await _seeded(state, settings)
    service = Service(settings)
    metrics, port = Metrics(), port_of(held)
    watch = ConnectionWatch([port], metrics.connections_closed.inc)
    followers = background(service, mail_transport(settings.smtp_url))
    app = web_app(service, metrics, followers, watch)
    held.close()
    async with embedded_server(app, "the service", port, ready=b" 200 ") as serving:
        facts = await _facts(state, seeded, service)
        write_private(state.data_dir / FACTS, facts)
        announce(facts)
        await asyncio.wait([serving])
    raise DevFault(f"the service ended by itself: see {state.data_dir}/service.log")


async def _seeded(state: DevState, settings: Settings) -> Facts:
    """Return the ids and keys of the demonstration, created by the first start."""
    kept = kept_secrets(state.data_dir)
    if "seeded" not in kept:
        # A service of its own: once opened, a service closes its storage and cannot be reopened.
        seeding = Service(
            settings,
            storage=lambda _mode: storage_for(settings, None),
            deadline_seconds=SEEDING_SECONDS,
        )
        async with seeding.opened() as service:
            kept["seeded"] = await seed(service)
        write_private(state.data_dir / SECRETS, kept)
    return kept["seeded"]


async def _facts(state: DevState, seeded: Facts, service: Service) -> Facts:
    mail_dir = state.data_dir.resolve() / "mail"
    mail_dir.mkdir(mode=0o700, exist_ok=True)
    partner_id: str = seeded["partner_id"]
    row = await service.partner_list.sandbox(partner_id)
    # Not kept: each reset of the sandbox makes others.
    fixtures = fixture_ids(partner_id, row["sandbox_epoch"] if row else 0)
    return {
        "base_url": state.public_url + API_PATH,
        "public_url": state.public_url,
        **seeded,
        "sandbox": fixtures._asdict(),
        "mail_dir": str(mail_dir),
        "database_url": state.database_url,
    }


@asynccontextmanager
async def _serving_documents(data_dir: Path, service_port: int) -> AsyncGenerator[str]:
    """Serve the store until the context ends; yields its endpoint. Raises DevFault."""
    directory = storage_directory(data_dir)
    directory.mkdir(mode=0o700, exist_ok=True)
    port = _storage_port(directory, service_port)
    async with local_store(
        directory, [LIVE_BUCKET, TEST_BUCKET], port=port, clock=system_clock
    ) as store:
        (directory / PORT_FILE).write_text(f"{port}\n")
        yield store.endpoint


def _storage_port(directory: Path, service_port: int) -> int:
    """Return the port of the last start if it is free, so that addresses stay the same."""
    with suppress(OSError, ValueError):
        last = int((directory / PORT_FILE).read_text())
        if last != service_port:
            return free_port(last)
    return next(port for port in iter(free_port, None) if port != service_port)
