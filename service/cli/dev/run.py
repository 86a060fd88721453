"""Starting and stopping `claim-ledger dev`: one process, with PostgreSQL as its child."""

import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from importlib import import_module
from pathlib import Path
from socket import socket
from threading import Thread
from typing import IO, Final

from service.cli.dev.faults import DevFault
from service.cli.dev.ports import HOST, held_port, port_of
from service.cli.dev.postgres import EmbeddedPostgres, EmbeddedPostgresError
from service.cli.dev.postgres.directory import lock, open_log
from service.cli.dev.signals import StopSignals
from service.cli.dev.state import FACTS, Announce, DevState, kept_secrets
from service.cli.dev.storage import refuse_production
from service.core import logs

LOG: Final = "service.log"
LOCK_SECONDS_MAX: Final = 2.0
"""How long an earlier dev may take to end after its `uv run` was killed."""

# Their hooks around fork() fail if they are registered in the middle of one. That would happen if
# the thread were the first to import them while this one starts PostgreSQL's programs.
_HOOKED: Final = ("logging", "concurrent.futures.thread", "random")
_SLOW: Final = (
    "service.cli.dev.serving",
    "service.storage.google",
    "service.storage.signer",
    "service.cli.dev.gcs.serving",
    "google.oauth2.credentials",
)
_SLOW_AT_FIRST: Final = ("alembic.command", "sqlalchemy.dialects.postgresql.psycopg")


def run(data_dir: Path, port: int, environment: Mapping[str, str], announce: Announce) -> None:
    """Run until SIGINT, SIGTERM or SIGHUP; `announce` is given the facts once the service answers.

    Raises:
        DevFault, MigrationFailed, SettingsError, OSError: one clear line each.

    """
    refuse_production(environment)
    with StopSignals().handled() as signals:
        try:
            _run(data_dir, port, environment, announce, signals)
        except Exception:  # raised again, unless it is ours
            if not signals.requested:  # else our own interruption caused it
                raise


def _run(
    data_dir: Path,
    port: int,
    environment: Mapping[str, str],
    announce: Announce,
    signals: StopSignals,
) -> None:
    with ExitStack() as stack:
        stack.enter_context(closing(_hold(data_dir, signals)))
        facts = data_dir / FACTS
        facts.unlink(missing_ok=True)  # left by a dev that was killed
        held = stack.enter_context(_own_port(port))
        stack.callback(facts.unlink, missing_ok=True)
        log = stack.enter_context(open_log(data_dir / LOG))
        # Imports run while PostgreSQL starts, when this process would only wait.
        _import(_HOOKED)
        first = not (data_dir / "postgres" / "cluster").exists()
        imports = Thread(target=_import, args=[_SLOW + _SLOW_AT_FIRST if first else _SLOW])
        stack.callback(imports.join)  # exiting during an import would print errors
        imports.start()
        postgres = stack.enter_context(EmbeddedPostgres(data_dir / "postgres"))
        imports.join()
        from service.cli.dev.serving import serve  # noqa: PLC0415 - imported by the thread

        signals.check()
        kept = kept_secrets(data_dir)
        for place in ("published", "tiles"):
            (data_dir / place).mkdir(mode=0o700, exist_ok=True)
        state = DevState(
            data_dir, kept["master_keys"], postgres.url, f"http://{HOST}:{port_of(held)}"
        )
        logs.configure("info", log)
        serve(state, held, environment, announce, signals)


def _hold(data_dir: Path, signals: StopSignals) -> IO[str]:
    """Lock the directory, created if need be, until the returned file is closed."""
    deadline = time.monotonic() + LOCK_SECONDS_MAX
    while True:
        try:
            return lock(data_dir)
        except EmbeddedPostgresError:
            if time.monotonic() > deadline:
                raise
            signals.check()
            time.sleep(0.05)


def _own_port(port: int) -> socket:
    """Hold the port until the server takes it: of two that start at once, the second is told."""
    try:
        return held_port(port)
    except OSError as error:
        fault = "is taken" if port else "is not available"
        raise DevFault(f"port {port} {fault}: choose another with --port") from error


def _import(modules: tuple[str, ...]) -> None:
    for module in modules:
        import_module(module)
