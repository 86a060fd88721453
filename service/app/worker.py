"""`claim-ledger worker`: the sequencer and the subscribers, without the API."""

import asyncio
import signal
from typing import Final

import uvloop

from service.app.background import background
from service.app.bootstrap import Service
from service.app.settings import Settings
from service.core import logs
from service.core.loops import Loop
from service.ledger.connection_limit import warn_of_limits
from service.ledger.database import LedgerUnavailable
from service.mail.transport import mail_transport

RETRY_SECONDS: Final = 5.0
"""Between two looks at the connection limits, while PostgreSQL is away."""


def work(settings: Settings) -> None:
    """Follow the logs until SIGINT or SIGTERM."""
    logs.configure(settings.log_level)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_work(settings))


async def _work(settings: Settings) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    service = Service(settings)
    followers = background(service, mail_transport(settings.smtp_url))
    limits = Loop("connection limits", lambda: _warn_of_limits(service))
    async with service.opened():
        followers.start()
        limits.start()
        await stopping.wait()
        await limits.stop()
        await followers.stop()


async def _warn_of_limits(service: Service) -> None:
    """Log once where an operator's login may find no place, as soon as PostgreSQL answers."""
    while True:
        try:
            return await warn_of_limits([ledger.database for ledger in service.ledgers])
        except LedgerUnavailable:
            await asyncio.sleep(RETRY_SECONDS)
