"""The collector of whether a ledger's schema is what migrations make."""

from service.evidence.verify.definitions import definitions_fault
from service.ledger.database import Database
from service.operations.gauges import Collector, ScrapedGauges, of_ledger


def schema_collector(database: Database) -> Collector:
    """Return the collector of one ledger's schema."""
    ledger = database.schema

    async def collect(gauges: ScrapedGauges) -> None:
        fault = await definitions_fault(database)
        gauges.set("schema_altered", fault is not None, ledger)

    return Collector(f"{ledger}.schema", of_ledger(ledger, "schema_altered"), collect)
