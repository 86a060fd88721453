"""Facts about the log itself."""

from uuid import UUID

from service.core.ids import stream_id
from service.ledger.events import Event


class LineageBegun(Event, frozen=True):
    """Checkpoints of this ledger are signed under `origin` from here on (decision 6).

    A ledger's first lineage begins with its first checkpoint. A later one begins where a restore or
    a failover has lost events: `previous` is then the last checkpoint that was published before, a
    signed note in full, and `shared_size` how many events this log has in common with it.
    `authorisation` is a note over all that but the reason, signed by the operator's key.
    """

    origin: str
    reason: str
    authorisation: str
    previous: str | None = None
    shared_size: int | None = None


EVENTS = (LineageBegun,)


def lineage_stream(ledger: str) -> UUID:
    """Return the id of the stream in which a ledger's lineages begin."""
    return stream_id("lineage", ledger)
