"""`claim-ledger worker`: the sequencer and the subscribers, without the API."""

import asyncio
import signal

import uvloop

from service.app.background import background
from service.app.bootstrap import Service
from service.app.settings import Settings
from service.core import logs
from service.mail.transport import mail_transport


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
    async with service.opened():
        followers.start()
        await stopping.wait()
        await followers.stop()
