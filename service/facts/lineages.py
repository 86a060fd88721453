"""Facts about the log itself."""

from uuid import UUID

from service.core.ids import stream_id
from service.ledger.events import Event


class LineageBegun(Event, frozen=True):
    """From here on, checkpoints of this ledger are signed under `origin` (decision 24).

    A ledger's first lineage begins with its first checkpoint. A later one begins where a restore or
    a failover has lost events: `previous` is then the last checkpoint published before (a complete
    signed note), and `shared_size` the number of events that this log has in common with it.
    `authorisation` is a note over all of that except the reason, signed by the operator's key.
    """

    origin: str
    reason: str
    authorisation: str
    previous: str | None = None
    shared_size: int | None = None


class EventsBound(Event, frozen=True):
    """From here on, only events with a MAC of this key or a later one get a number.

    `event_key` is the key that bound this event, too (decision 45): one of a key before it retires
    nothing. An installation that began with MACs has no such event until it retires a key.
    """

    event_key: int


class EventTakenBack(Event, frozen=True):
    """An event of this service that had been set aside got its number after all.

    `set_aside_number` is its row in `set_aside`; the rest names the event, and says why in the
    team's words.
    """

    set_aside_number: int
    stream: str
    stream_version: int
    event_topic: str
    reason: str


def lineage_stream(ledger: str) -> UUID:
    """Return the id of the stream in which a ledger's lineages begin."""
    return stream_id("lineage", ledger)
