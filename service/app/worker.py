"""`claim-ledger worker`: the sequencer and the subscribers, without the API.

It serves an operations listener of its own, as does the one beside `serve`, for all of that.
"""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path

import uvloop
from prometheus_client.registry import Collector as Source

from service.app.background import background
from service.app.bootstrap import Service
from service.app.logins import check_logins
from service.app.master_keys import check_ring
from service.app.operations import operations_loop
from service.app.settings import Settings
from service.app.signals import ignore_stops
from service.app.tracing import traced_steps, traces_for
from service.core import logs
from service.core.garbage import leave_out_what_is_there
from service.core.loops import Loop
from service.http.connections import ConnectionWatch
from service.ledger.connection_limit import warn_of_limits
from service.mail.transport import mail_transport
from service.operations.collectors.api import api_collector
from service.operations.gauges import Collector
from service.operations.metrics import SharedMetrics

Check = Callable[[Settings], Coroutine[object, object, None]]
"""Of what a process begins with; raises SettingsError."""


def work(settings: Settings) -> None:
    """Follow the logs until SIGINT or SIGTERM.

    Raises SettingsError as `check_logins` and `check_ring` do.
    """
    _run(settings, [check_logins, check_ring], follow=True)


def work_beside(settings: Settings, metrics_directory: str | None) -> None:
    """Do what `serve` has beside the API, until SIGINT or SIGTERM.

    `metrics_directory` is where the API's processes keep their metrics, if anybody reads them.
    `serve` has looked at the ring. What it no longer opens by now, the listener here has to report.
    """
    counted = [SharedMetrics(Path(metrics_directory))] if metrics_directory else []
    api = api_collector(settings.host, settings.port)
    _run(settings, [check_logins], follow=settings.run_worker, counted=counted, others=[api])


def _run(
    settings: Settings,
    checks: Sequence[Check],
    *,
    follow: bool,
    counted: Sequence[Source] = (),
    others: Sequence[Collector] = (),
) -> None:
    logs.configure(settings.log_level)
    leave_out_what_is_there()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_work(settings, checks, follow, counted, others))
    ignore_stops()


async def _work(
    settings: Settings,
    checks: Sequence[Check],
    follow: bool,
    counted: Sequence[Source],
    others: Sequence[Collector],
) -> None:
    for check in checks:
        await check(settings)
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    service = Service(settings)
    transport = mail_transport(settings.smtp_url)
    traces = traces_for(settings, "worker") if follow else None
    around = traced_steps(traces) if traces else None
    followers = background(service, transport, around=around) if follow else None
    databases = [ledger.database for ledger in service.ledgers]
    loops = [Loop("connection limits", lambda: warn_of_limits(databases))]
    if settings.operations_port:
        loops.append(operations_loop(service, counted, others))
        loops.append(ConnectionWatch([settings.operations_port], lambda _closed: None).loop)
    async with service.opened():
        if followers is not None:
            followers.start()
        for loop in loops:
            loop.start()
        await stopping.wait()
        for loop in loops:
            await loop.stop()
        if followers is not None:
            await followers.stop()
    if traces is not None:
        traces.close()
