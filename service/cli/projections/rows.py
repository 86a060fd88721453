"""What several commands of read models show."""

from service.cli.target import Fields
from service.core.clock import timestamp
from service.ledger.following.parking import Parked


def parked_row(ledger: str, event: Parked) -> Fields:
    """Return a parked event as it is shown."""
    return (
        {"ledger": ledger}
        | event._asdict()
        | {"stream_id": str(event.stream_id), "parked_at": timestamp(event.parked_at)}
    )
