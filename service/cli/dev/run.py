"""Starting and stopping everything of `claim-ledger dev` in one process, PostgreSQL its child."""

import socket
from collections.abc import Mapping
from contextlib import ExitStack, closing
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import BinaryIO, Final

from service.cli.dev.directory import hold, open_log
from service.cli.dev.faults import PortTaken
from service.cli.dev.postgres import EmbeddedPostgres
from service.cli.dev.signals import StopSignals
from service.cli.dev.state import FACTS, Announce, DevState, kept_secrets
from service.cli.dev.storage import refuse_production
from service.core import logs

HOST = "127.0.0.1"
# Their hooks around fork() fail when they are registered in the middle of one, as it would happen
# if the thread were the first to import them while this one starts PostgreSQL's programs.
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
    """Run until SIGINT, SIGTERM or SIGHUP; `announce` hears the facts once the service answers.

    Raises:
        DevFault, EmbeddedPostgresError, MigrationFailed, SettingsError: one clear line each.

    """
    refuse_production(environment)
    with StopSignals().heard() as signals:
        try:
            with closing(hold(data_dir, signals)):
                _run(data_dir, port, environment, announce, signals)
        except Exception:
            if not signals.asked:  # else it is what our own hurrying led to
                raise


def _run(
    data_dir: Path,
    port: int,
    environment: Mapping[str, str],
    announce: Announce,
    signals: StopSignals,
) -> None:
    facts = data_dir / FACTS
    facts.unlink(missing_ok=True)  # of a dev that was killed
    port = free_port(port)
    with open_log(data_dir) as log:
        try:
            _run_on_postgres(data_dir, port, environment, announce, signals, log)
        finally:
            facts.unlink(missing_ok=True)


def _run_on_postgres(
    data_dir: Path,
    port: int,
    environment: Mapping[str, str],
    announce: Announce,
    signals: StopSignals,
    log: BinaryIO,
) -> None:
    # While PostgreSQL starts, which is another process's work, this one would only wait.
    _import(_HOOKED)
    first = not (data_dir / "postgres" / "cluster").exists()
    imports = Thread(target=_import, args=[_SLOW + _SLOW_AT_FIRST if first else _SLOW])
    with ExitStack() as stack:
        stack.callback(imports.join)  # an import that the process's end overtakes would complain
        imports.start()
        postgres = stack.enter_context(EmbeddedPostgres(data_dir / "postgres"))
        imports.join()
        from service.cli.dev.serving import serve  # noqa: PLC0415 - imported meanwhile

        signals.check()
        kept = kept_secrets(data_dir)
        (data_dir / "published").mkdir(mode=0o700, exist_ok=True)
        state = DevState(data_dir, kept["master_keys"], postgres.url, f"http://{HOST}:{port}")
        logs.configure("info", log)
        serve(state, port, environment, announce, signals)


def _import(modules: tuple[str, ...]) -> None:
    for module in modules:
        import_module(module)


def free_port(port: int) -> int:
    """Return the port, or a free one for 0; raises PortTaken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            fault = "is taken" if port else "cannot be had"
            raise PortTaken(f"port {port} {fault}: choose another with --port") from error
        return probe.getsockname()[1]
