"""`claim-ledger serve`: the application in worker processes of Granian."""

import gc
import os
import signal
import socket
import tempfile
from contextlib import nullcontext
from functools import partial

from granian.constants import Interfaces, Loops
from granian.http import HTTP1Settings
from granian.server import Server
from granian.utils.proxies import wrap_asgi_with_proxy_headers

from service.app.settings import SERVE, Settings
from service.app.worker_process import WorkerProcess
from service.core import logs
from service.core.parent import signal_with_parent


class ServeFault(Exception):
    """The service cannot be served; `str()` is one line for a person."""


GC_THRESHOLD = 10_000
"""New objects before the collector looks for cycles; Python's own 700 is a request or two."""

BUFFER_BYTES_MAX = 32 * 1024
"""Read from a connection at once: a head, or a part of a body. A connection that has carried a
large body keeps as much; with Granian's 400 KiB six hundred of them took 190 MB."""


def serve_forever(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM; raises ServeFault when the address is not available.

    The worker, where this runs it, is a process of its own: requests never wait for its work.
    """
    _check_address(settings.host, settings.port)
    logs.configure(settings.log_level)
    # A worker inherits the parent's handlers: until it had its own it would miss SIGTERM, and be
    # waited for.
    os.register_at_fork(after_in_child=partial(signal.signal, signal.SIGTERM, signal.SIG_DFL))
    # One that outlived its parent would share the port with the next `serve`, unseen.
    if end_with_parent := signal_with_parent(signal.SIGTERM):
        os.register_at_fork(after_in_child=end_with_parent)
    with tempfile.TemporaryDirectory(prefix="claim-ledger-metrics-") as directory:
        if settings.workers > 1:
            # prometheus-client shares metrics between processes through files, and reads where
            # from the environment when it is imported: before the workers start.
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = directory  # noqa: TID251 - as said above
        server = Server(
            "service.app.serve:application",
            factory=True,
            address=settings.host,
            port=settings.port,
            interface=Interfaces.ASGI,
            workers=settings.workers,
            loop=Loops.uvloop,
            backlog=2048,
            http1_settings=HTTP1Settings(max_buffer_size=BUFFER_BYTES_MAX),
            workers_kill_timeout=10,
            respawn_failed_workers=True,
            log_dictconfig=logs.GRANIAN_LOGGING,
        )
        with WorkerProcess() if settings.run_worker else nullcontext():
            server.serve()


def application() -> object:
    """Make one worker's application from the environment, which the parent has passed on."""
    from service.app.bootstrap import Service
    from service.app.web import web_app
    from service.operations.metrics import Metrics

    settings = Settings.from_environment(require=SERVE)
    logs.configure(settings.log_level)
    service = Service(settings)
    app = web_app(service, Metrics(shared=settings.workers > 1), None)
    # A tenth of a worker's time went into walking the objects of its modules again and again.
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)
    if settings.trusted_proxies:
        return wrap_asgi_with_proxy_headers(
            app, trusted_hosts=[str(network) for network in settings.trusted_proxies]
        )
    return app


def _check_address(host: str, port: int) -> None:
    """Bind once, as Granian sets SO_REUSEPORT, with which two servers can share a port unseen."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise ServeFault(f"cannot listen on {host}, port {port}: {error.strerror}") from error
