"""The progress of a rebuild, as a value, so that a rolled-back transaction needs no undoing."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from service.ledger.decoding import Unread
from service.ledger.events import Recorded
from service.ledger.following.parking import FOLLOWS
from service.ledger.projector import Projector, Write
from service.ledger.rebuild.refused import RebuildRefused


class SkippedEvent(NamedTuple):
    """An event that is not among the rebuilt rows. `fault` quotes none of its data.

    `position` is 0 before it has one.
    """

    position: int
    stream_id: UUID
    fault: str


class BuildProgress(NamedTuple):
    """What tables contain: the log up to `position`, `events` of it decoded, less those skipped.

    A bad event is skipped, together with the later events of its stream, as a follower parks them.
    If `may_skip` is False, it ends the rebuild instead. `skipped` is in the order of the log.
    """

    position: int = 0
    events: int = 0
    skipped: tuple[SkippedEvent, ...] = ()
    skipped_streams: frozenset[UUID] = frozenset()
    may_skip: bool = False

    def since(self, known: int) -> "BuildProgress":
        """Return a copy without the first `known` skipped events, for a reader who has those."""
        return self._replace(skipped=self.skipped[known:], skipped_streams=frozenset())

    def joined(self, later: "BuildProgress") -> "BuildProgress":
        """Return `later`, which knows only newer skipped events, with those of this one."""
        streams = {one.stream_id for one in later.skipped}
        return later._replace(
            skipped=self.skipped + later.skipped, skipped_streams=self.skipped_streams | streams
        )

    def project(
        self, projector: Projector, events: Sequence[Recorded | Unread]
    ) -> tuple[list[Write], "BuildProgress"]:
        """Return what the next events change, in the log's order, and the progress after them.

        Raises RebuildRefused if the projector fails at an event, and none may be skipped.
        """
        writes, skipped, streams = list[Write](), list[SkippedEvent](), set(self.skipped_streams)
        for event in events:
            if streams and event.stream_id in streams:
                fault = FOLLOWS
            elif isinstance(event, Unread):
                fault = event.fault
            else:
                try:
                    writes += tuple(projector.project(event))
                except Exception as error:  # a projector may raise anything
                    fault = type(error).__name__
                    if not self.may_skip:
                        message = f"the event at position {event.position} cannot be applied"
                        raise RebuildRefused(f"{message}: {fault}") from error
                else:
                    continue
            skipped.append(SkippedEvent(event.position, event.stream_id, fault))
            streams.add(event.stream_id)
        return writes, self._replace(
            events=self.events + [type(event) for event in events].count(Recorded),
            skipped=self.skipped + tuple(skipped),
            skipped_streams=frozenset(streams),
        )
