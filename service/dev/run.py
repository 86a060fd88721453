"""Starting and stopping everything of `claim-ledger dev` in one process, PostgreSQL its child."""

import asyncio
import signal
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from granian.constants import Interfaces
from granian.server.embed import Server

from migrations import migrate
from service.bootstrap import Service
from service.dev.seed import seed
from service.dev.state import FACTS, SECRETS, DevState, kept_secrets, write_private
from service.embedded import EmbeddedPostgres
from service.mail.transport import mail_transport
from service.web.app import API_PATH
from service.web.metrics import Metrics

HOST = "127.0.0.1"

Facts = dict[str, Any]


class PortTaken(Exception):
    """Something else listens on the port."""


def run(
    data_dir: Path, port: int, environment: Mapping[str, str], announce: Callable[[Facts], None]
) -> None:
    """Run until SIGINT or SIGTERM.

    Raises:
        PortTaken, EmbeddedPostgresError: one clear line each.

    """
    port = _free(port)
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with EmbeddedPostgres(data_dir / "postgres") as postgres:
        (data_dir / FACTS).unlink(missing_ok=True)
        migrate(postgres.url)
        kept = kept_secrets(data_dir)
        state = DevState(data_dir, kept["master_keys"], postgres.url, f"http://{HOST}:{port}")
        try:
            asyncio.run(_serve(state, port, dict(environment), kept, announce))
        finally:
            (data_dir / FACTS).unlink(missing_ok=True)


async def _serve(
    state: DevState,
    port: int,
    environment: dict[str, str],
    kept: dict[str, Any],
    announce: Callable[[Facts], None],
) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    settings = state.settings(environment)
    service = Service(settings)
    transport = mail_transport(settings.smtp_url)
    if "seeded" not in kept:
        async with service.opened():
            kept["seeded"] = await seed(service)
        write_private(state.data_dir / SECRETS, kept)
    app = service.app(Metrics(), service.background(transport))
    server = Server(app, address=HOST, port=port, interface=Interfaces.ASGI, log_enabled=False)
    serving = asyncio.create_task(server.serve())
    try:
        await _answers(port, serving)
        facts = {
            "base_url": state.public_url + API_PATH,
            "public_url": state.public_url,
            **kept["seeded"],
            "mail_dir": str(state.data_dir.resolve() / "mail"),
            "database_url": state.database_url,
        }
        write_private(state.data_dir / FACTS, facts)
        announce(facts)
        await asyncio.wait(
            [serving, asyncio.ensure_future(stopping.wait())],
            return_when=asyncio.FIRST_COMPLETED,
        )
    finally:
        server.stop()
        await serving
        await transport.close()


async def _answers(port: int, serving: "asyncio.Task[None]") -> None:
    """Wait until the service answers."""
    while not serving.done():
        try:
            reader, writer = await asyncio.open_connection(HOST, port)
        except OSError:
            await asyncio.sleep(0.01)
            continue
        writer.write(b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        status = await reader.readline()
        writer.close()
        if b" 200 " in status:
            return
        await asyncio.sleep(0.05)


def _free(port: int) -> int:
    """Answer the port, or a free one for 0; raises PortTaken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise PortTaken(f"port {port} is taken: choose another with --port") from error
        return probe.getsockname()[1]
