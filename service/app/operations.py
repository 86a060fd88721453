"""The operations listener of a process: metrics and health in detail, for operators alone."""

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog
from granian.constants import Interfaces
from granian.log import LogLevels
from prometheus_client.registry import Collector as Source

from service.app.bootstrap import Service
from service.core.loops import Loop
from service.http.server import check_address, embedded
from service.operations.collectors.checkpoints import checkpoint_collector
from service.operations.collectors.countersigning import countersigning_collector
from service.operations.collectors.database import database_collectors, webhook_collector
from service.operations.collectors.keys import key_collectors
from service.operations.collectors.ledgers import ledger_collector
from service.operations.collectors.schemas import schema_collector
from service.operations.gauges import Collector
from service.operations.listener import OperationsApp
from service.operations.scrapes import Scrapes

RETRY_SECONDS: Final = 5.0
"""Before the next attempt to listen, while another process has the port."""

log = structlog.get_logger()


def operations_loop(
    service: Service, counted: Sequence[Source], others: Sequence[Collector]
) -> Loop:
    """Return what serves the listener; `counted` are sources of what processes count.

    `others` are collectors besides those of the database.

    Nothing depends on it: where the port is taken, as by a process that this one replaces, the rest
    goes on, and the listener begins when the port is free.
    """
    host, port = service.settings.operations_host, service.settings.operations_port
    app = OperationsApp(scrapes(service, counted, others), host)

    async def serve() -> None:
        warned = False
        while True:
            try:
                check_address(host, port)
            except OSError:
                if not warned:
                    log.warning("no operations listener: its port is taken, or no address of ours")
                warned = True
            else:
                async with embedded(
                    app, host, port, interface=Interfaces.ASGINL, log_level=LogLevels.error
                ) as serving:
                    await asyncio.wait([serving])
                fault = serving.exception()
                log.error(
                    "the operations listener ended and is restarted", port=port, exc_info=fault
                )
            await asyncio.sleep(RETRY_SECONDS)

    return Loop("operations", serve)


def scrapes(service: Service, counted: Sequence[Source], others: Sequence[Collector]) -> Scrapes:
    """Return the scrapes of an installation."""
    return Scrapes([*collectors(service), *others], counted)


def collectors(service: Service) -> Sequence[Collector]:
    """Return what reads the figures of an installation's database."""
    clock, ledgers = service.clock, service.ledgers
    policy = service.settings.witness_policy_file
    return [
        *(ledger_collector(ledger, service.read_models, clock) for ledger in ledgers),
        *database_collectors(
            service.accounts.database, service.modes["live"].ledger.database, clock
        ),
        *key_collectors(service.secrets),
        *(schema_collector(ledger.database) for ledger in ledgers),
        *(webhook_collector(name, one.ledger.database) for name, one in service.modes.items()),
        *(
            checkpoint_collector(
                service.checkpoints(ledger.name), clock, has_tiles=service.tiles is not None
            )
            for ledger in ledgers
        ),
        *(
            countersigning_collector(ledger, policy, service.time_authority, clock)
            for ledger in ledgers
        ),
    ]
