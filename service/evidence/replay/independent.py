"""A second opinion on the claim list, by independent software (decision 26).

The stock recorder of the `eventsourcing` library reads the log through the view `stored_events`,
and plain Python folds it here: no reader, codec or projector of ours is involved. Only the upcasts
of the catalogue are shared, which define what an older event means.
"""

import json
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NoReturn
from uuid import UUID

from eventsourcing.domain import DomainEventProtocol
from eventsourcing.persistence import (
    ApplicationRecorder,
    Mapper,
    Notification,
    StoredEvent,
    Transcoder,
)

from service.evidence.replay.log_fault import LogFault, check_place
from service.ledger.events import Catalogue

PAGE: Final = 1000
"""Events that are read at once."""
FIRST_STAGE: Final = "triage"
TOPICS: Final = frozenset({"ClaimCreated", "ClaimStageChanged"})
"""The events that the claim list is folded from."""
_IMPOSSIBLE: Final = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Raised by events that cannot be true, such as a stage of a claim that was never created."""

Claims = dict[str, dict[str, Any]]
"""The claim list: claims by id, with the field names that `audit replay` shows."""


@dataclass(frozen=True)
class PlainEvent:
    """An event as the log has it, its data brought to the present version of its topic."""

    originator_id: UUID
    originator_version: int
    topic: str
    data: dict[str, Any]
    meta: dict[str, Any]


class PlainJson(Transcoder):
    """JSON and nothing else: the library's own transcoder gives some objects a meaning."""

    def encode(self, obj: Any) -> bytes:  # noqa: ANN401 - the library's signature
        """Return JSON in UTF-8."""
        return json.dumps(obj).encode()

    def decode(self, data: bytes) -> Any:  # noqa: ANN401 - as above
        """Read JSON; raises ValueError."""
        return json.loads(data)


class PlainMapper(Mapper[UUID]):
    """Maps our stored events (docs/events.md), upcasting as the library's convention has it."""

    def __init__(self, catalogue: Catalogue) -> None:
        """`catalogue` knows each topic's present version and its upcasts."""
        super().__init__(PlainJson())
        self._catalogue = catalogue

    def to_domain_event(self, stored_event: StoredEvent) -> PlainEvent:
        """Return the event, sealed fields still sealed; raises KeyError for an unknown topic."""
        state = self.transcoder.decode(stored_event.state)
        cls, data = self._catalogue[stored_event.topic], state["data"]
        for version in range(state["class_version"], cls.class_version):
            data = getattr(cls, f"upcast_v{version}_v{version + 1}")(data)
        assert isinstance(stored_event.originator_id, UUID)  # noqa: S101 - the column's type
        return PlainEvent(
            stored_event.originator_id,
            stored_event.originator_version,
            stored_event.topic,
            data,
            state["meta"],
        )

    def to_stored_event(self, domain_event: DomainEventProtocol[UUID]) -> NoReturn:
        """Refuse: nothing is written through the library."""
        raise TypeError(f"a {type(domain_event).__name__} cannot be written here")


def numbered(
    recorder: ApplicationRecorder,
    position: int,
    known: Container[str],
    advance: Callable[[int], object],
) -> Iterator[Notification]:
    """Yield the events up to a position, read a page at a time.

    Raises LogFault where a position is missing or repeated, and for a topic that is not `known`.
    """
    last = 0
    while page := recorder.select_notifications(
        last, PAGE, stop=position, inclusive_of_start=False
    ):
        start = last
        for one in page:
            check_place(one.id, last + 1)
            if one.topic not in known:
                raise LogFault(one.id, f"{one.topic!r} is no event of this ledger")
            yield one
            last = one.id
        advance(last - start)
    if last < position:
        check_place(None, last + 1)


def claim_list(events: Iterable[Notification], mapper: PlainMapper) -> Claims:
    """Fold the claim list in memory, about a kilobyte a claim; raises LogFault."""
    claims: Claims = {}
    for stored in events:
        if stored.topic in TOPICS:
            try:
                _fold(claims, mapper.to_domain_event(stored))
            except _IMPOSSIBLE as error:
                fault = f"its {stored.topic} cannot be folded ({type(error).__name__})"
                raise LogFault(stored.id, fault) from error
    return claims


def _fold(claims: Claims, event: PlainEvent) -> None:
    data = event.data
    if event.topic == "ClaimCreated":
        claims[data["claim_id"]] = {
            "claim_id": data["claim_id"],
            "partner_id": data["partner_id"],
            "entity_id": data["entity_id"],
            "partner_claim_id": data["partner_claim_id"],
            "partner_user_id": data.get("partner_user_id"),
            "partner_invoice_ids": data.get("partner_invoice_ids", []),
            "stage": FIRST_STAGE,
            "created_at": datetime.fromisoformat(event.meta["at"]),
        }
    else:
        claims[data["claim_id"]]["stage"] = data["stage"]
