"""`claim-ledger serve`: the application in worker processes of Granian, and one beside them."""

import asyncio
import gc
import os
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from typing import Final
from urllib.parse import urlsplit

import structlog
from granian.constants import Interfaces, Loops

from service.app.forks import keep_stops, prepare_forks
from service.app.logins import check_logins
from service.app.main_process import MainProcess
from service.app.master_keys import check_ring, master_keys
from service.app.metrics_directory import metrics_directory
from service.app.settings import SERVE, Settings
from service.app.signals import ignore_stops
from service.app.worker_process import METRICS_DIRECTORY, WorkerProcess
from service.core import logs
from service.core.garbage import leave_out_what_is_there
from service.http.connections import ConnectionWatch, allow_files, close_all
from service.http.server import BACKLOG, HTTP, HTTP1, check_address, connections_max

log = structlog.get_logger()


class ServeFault(Exception):
    """The service cannot be served; `str()` is one line for a person."""


_OF_WORKERS: Final = (
    "service.app.bootstrap",
    "service.app.web",
    "service.http.client_address",
    "service.operations.metrics",
    "uvloop",
)
STOP_SECONDS_MAX: Final = 10
"""A worker that has not ended by then is killed."""
ANSWER_SECONDS_MAX: Final = 7
"""After a stop. Requests have been answered by then; those that were begun and not finished, and
responses that nobody reads, would keep a worker until it is killed."""


def serve_forever(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises ServeFault when the address is not available, and SettingsError when a login may do too
    much, or the master keys do not open the service's own keys.
    Beside the API's processes there is one that follows the log and serves the operations listener,
    as far as the settings want either: requests never wait for its work. Raises KeyServiceFault
    when KMS does not unwrap the master keys.
    """
    _check_address(settings.host, settings.port)
    master_keys(settings)  # here, so that workers inherit what KMS unwrapped, and do not ask again
    allow_files()
    logs.configure(settings.log_level)
    warn_of_untrusted_proxy(settings)
    asyncio.run(check_logins(settings))
    asyncio.run(check_ring(settings))
    prepare_forks()
    with metrics_directory() if settings.operations_port else nullcontext() as directory:
        if directory is not None:
            # prometheus-client keeps metrics for another process in files, and reads where from
            # the environment when it is imported: before anything of theirs is imported.
            os.environ[METRICS_DIRECTORY] = directory  # noqa: TID251 - as said above
        _import_application()
        server = MainProcess(
            "service.app.serve:application",
            factory=True,
            address=settings.host,
            port=settings.port,
            interface=Interfaces.ASGI,
            workers=settings.workers,
            loop=Loops.uvloop,
            http=HTTP,
            http1_settings=HTTP1,
            websockets=False,
            backlog=BACKLOG,
            backpressure=connections_max(),
            workers_kill_timeout=STOP_SECONDS_MAX,
            respawn_failed_workers=True,
            log_dictconfig=logs.GRANIAN_LOGGING,
        )
        has_work = settings.run_worker or settings.operations_port
        with WorkerProcess() if has_work else nullcontext() as beside:
            if beside is not None:
                server.when_stopping = beside.start_no_other
            server.serve()
    ignore_stops()


def _import_application() -> None:
    """Import here, once, what every worker needs: a fork shares it, and starts a second sooner."""
    for module in _OF_WORKERS:
        import_module(module)
    gc.freeze()  # else the collector would write to the pages that the forks share


def application() -> object:
    """Make one worker's application from the environment, which the parent has passed on."""
    settings = Settings.from_environment(require=SERVE)
    from service.app.bootstrap import Service
    from service.app.web import web_app
    from service.http.client_address import ForwardedClients
    from service.operations.metrics import Metrics, reserve

    logs.configure(settings.log_level)
    if (directory := os.environ.get(METRICS_DIRECTORY)) is not None:  # noqa: TID251 - as said above
        reserve(directory)
    service = Service(settings)
    metrics = Metrics()
    watch = ConnectionWatch([settings.port], metrics.connections_closed.inc)
    app = web_app(service, metrics, None, watch)
    leave_out_what_is_there()
    loop = asyncio.get_event_loop()  # Granian has set it
    # Last: until then a stop ends this process at once, as there is nothing to finish.
    keep_stops(loop, partial(close_all, [settings.port]), ANSWER_SECONDS_MAX)
    return ForwardedClients(app, settings.trusted_proxies)


def warn_of_untrusted_proxy(settings: Settings) -> None:
    """Warn where a proxy has to be in front of us, and none is trusted: we speak no TLS."""
    if urlsplit(settings.public_url).scheme == "https" and not settings.trusted_proxies:
        log.warning(
            "CLAIM_LEDGER_PUBLIC_URL is https, and CLAIM_LEDGER_TRUSTED_PROXIES names no proxy: "
            "all clients of one share its limits"
        )


def _check_address(host: str, port: int) -> None:
    try:
        check_address(host, port)
    except OSError as error:
        raise ServeFault(f"cannot listen on {host}, port {port}: {error.strerror}") from error
