"""The collector of what others sign of checkpoints: witnesses, and authorities of time."""

from service.core.clock import Clock
from service.evidence.countersigning.state import countersigning_state
from service.evidence.policy import Policy
from service.evidence.time_stamp import TimeAuthority
from service.ledger.ledger import Ledger
from service.operations.gauges import Collector, ScrapedGauges, of_ledger


def countersigning_collector(
    ledger: Ledger, policy: Policy | None, authority: TimeAuthority | None, clock: Clock
) -> Collector:
    """Return the collector of one ledger."""

    async def collect(gauges: ScrapedGauges) -> None:
        state, now = await countersigning_state(ledger, policy, authority), clock()
        gauges.set("witness_refusals", state.refusals, ledger.name)
        gauges.set("countersignatures_forged", state.forged, ledger.name)
        for name, since in (
            ("unwitnessed_seconds", state.unwitnessed_since),
            ("unstamped_seconds", state.unstamped_since),
        ):
            age = (now - since).total_seconds() if since else 0.0
            gauges.set(name, max(0.0, age), ledger.name)

    names = (
        "witness_refusals",
        "countersignatures_forged",
        "unwitnessed_seconds",
        "unstamped_seconds",
    )
    return Collector(f"{ledger.name}.countersigning", of_ledger(ledger.name, *names), collect)
