"""`claim-ledger serve`: the application in worker processes of Granian."""

import os
import tempfile

from granian.constants import Interfaces, Loops
from granian.server import Server
from granian.utils.proxies import wrap_asgi_with_proxy_headers

from service import logs
from service.settings import SERVE, Settings


def serve_forever(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM."""
    with tempfile.TemporaryDirectory(prefix="claim-ledger-metrics-") as directory:
        if settings.workers > 1:
            # prometheus-client shares metrics between processes through files, and reads where
            # from the environment when it is imported: before the workers start.
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = directory  # noqa: TID251 - as said above
        Server(
            "service.web.serve:application",
            factory=True,
            address=settings.host,
            port=settings.port,
            interface=Interfaces.ASGI,
            workers=settings.workers,
            loop=Loops.uvloop,
            backlog=2048,
            workers_kill_timeout=10,
            respawn_failed_workers=True,
            log_dictconfig=logs.GRANIAN_LOGGING,
        ).serve()


def application() -> object:
    """Make one worker's application from the environment."""
    from service.bootstrap import Service  # noqa: PLC0415 - workers only
    from service.mail.transport import mail_transport  # noqa: PLC0415 - as above
    from service.web.metrics import Metrics  # noqa: PLC0415 - after the environment is set

    settings = Settings.from_environment(require=SERVE)
    logs.configure(settings.log_level)
    service = Service(settings)
    background = None
    if settings.background:
        background = service.background(mail_transport(settings.smtp_url))
    app = service.app(Metrics(shared=settings.workers > 1), background)
    if settings.trusted_proxies:
        return wrap_asgi_with_proxy_headers(
            app, trusted_hosts=[str(network) for network in settings.trusted_proxies]
        )
    return app
