"""The lineages of a log, and how far each one's checkpoints bind it.

After a restore that lost events, a new lineage states how many of the events signed before are
still in the log (service/facts/lineages.py). Up to there, the older checkpoints continue to hold.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from service.evidence.authorisation import Lineage, Unsound, lineage_of
from service.evidence.checkpoint import SIZE_MAX
from service.evidence.note import NoteKey
from service.evidence.verdict import Fault
from service.facts.lineages import LineageBegun, lineage_stream
from service.ledger.codec import Codec
from service.ledger.database import Connection
from service.ledger.events import Catalogue, Unreadable
from service.ledger.sql import queries

_SQL = queries("service.evidence.checkpoints")
_CATALOGUE: Final[Catalogue] = {LineageBegun.__name__: LineageBegun}


class Lineages(NamedTuple):
    """The lineages of a log, oldest first, and the first fault in how they began."""

    begun: Sequence[Lineage]
    fault: Fault | None = None

    def reach(self, origin: str) -> int | None:
        """Return the size up to which checkpoints of an origin bind this log; None: unknown origin.

        An origin that only a later lineage names was lost whole, its beginning included.
        """
        for number, lineage in enumerate(self.begun):
            if origin == lineage.origin:
                later = self.begun[number + 1 :]
            elif origin == lineage.follows:
                later = self.begun[number:]
            else:
                continue
            return min((one.shared_size for one in later), default=SIZE_MAX)
        return None

    def sets_aside(self, origin: str, size: int) -> bool:
        """Return whether a lineage says that a checkpoint covers events that were lost since."""
        shared, lost = self.aside(origin)
        return shared < size <= lost

    def aside(self, origin: str) -> tuple[int, int]:
        """Return beyond which size an origin's checkpoints are set aside, and up to which.

        This concerns only checkpoints up to the one that the lineage follows. A later checkpoint of
        the same origin binds the log, so that nobody can use an old authorisation that was never
        used.
        """
        reach = self.reach(origin)
        if reach is None:
            return 0, 0
        followed = [one.follows_size for one in self.begun if one.follows == origin]
        return reach, max(followed, default=SIZE_MAX)


async def lineages_of(connection: Connection, schema: str, keys: Sequence[NoteKey]) -> Lineages:
    """Read the lineages of a ledger, up to the first one that is unsound."""
    stream = lineage_stream(schema)
    codec = Codec(schema, _CATALOGUE)
    begun: list[Lineage] = []
    for row in await connection.fetch(_SQL.lineages.on(schema), stream):
        try:
            event, _ = codec.decode(stream, row["originator_version"], row["topic"], row["state"])
            assert isinstance(event, LineageBegun)  # noqa: S101 - the catalogue has no other
            lineage = lineage_of(event, keys, schema, begun, row["position"])
        # Altered JSON: too deep, no UTF-8, another shape or type.
        except (Unreadable, ValueError, TypeError, RecursionError, msgspec.MsgspecError) as error:
            said = str(error) if isinstance(error, Unsound) else "it cannot be read"
            place = f"at position {row['position']}" if row["position"] else "without a number"
            sentence = f"The lineage that begins {place} is not sound: {said}."
            return Lineages(begun, Fault(row["position"], sentence))
        begun.append(lineage)
    return Lineages(begun)
