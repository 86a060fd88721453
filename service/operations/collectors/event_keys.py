"""The collector of the keys that bind events: who cannot open one does not hear of a new one."""

from service.ledger.encryption import KeyUnknown
from service.ledger.service_keys import ServiceKeyStore
from service.operations.gauges import Collector, ScrapedGauges


def event_keys_collector(secrets: ServiceKeyStore) -> Collector:
    """Return the collector of whether this process's ring opens every event key."""

    async def collect(gauges: ScrapedGauges) -> None:
        try:
            await secrets.known_events()
        except KeyUnknown:
            gauges.set("event_keys_open", 0)
        else:
            gauges.set("event_keys_open", 1)

    return Collector("event_keys", [("event_keys_open",)], collect)
