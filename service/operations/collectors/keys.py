"""Collectors of stored keys: a process has those of its start, and does not notice another one."""

from collections.abc import Awaitable, Callable

from service.ledger.encryption import KeyUnknown
from service.ledger.service_keys import ServiceKeyStore
from service.operations.gauges import Collector, ScrapedGauges


def key_collectors(secrets: ServiceKeyStore) -> list[Collector]:
    """Return the collectors of whether this process's ring opens the secrets and event keys."""
    return [
        _opening("service_keys", secrets.check),
        _opening("event_keys", secrets.known_events),
    ]


def _opening(name: str, read: Callable[[], Awaitable[object]]) -> Collector:
    gauge = f"{name}_open"

    async def collect(gauges: ScrapedGauges) -> None:
        try:
            await read()
        except KeyUnknown:
            gauges.set(gauge, 0)
        else:
            gauges.set(gauge, 1)

    return Collector(name, [(gauge,)], collect)
