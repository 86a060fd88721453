"""What commands and sending know of the stream of a partner's endpoints."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from service.facts.changes import Budgets
from service.facts.endpoints import (
    EndpointAdded,
    EndpointChanged,
    EndpointEnabled,
    Endpoints,
    EndpointSecretRotated,
    fold,
)
from service.ledger.events import Event, Recorded
from service.ledger.folding import Folding

COUNTED: Final = (EndpointAdded, EndpointChanged, EndpointSecretRotated, EndpointEnabled)
"""The changes of which a partner's people can make so many a day."""


class EndpointsPast(NamedTuple):
    """A partner's endpoints, and what its people have changed of late."""

    endpoints: Endpoints = Endpoints()
    changes: Budgets = Budgets()


def proven(before: Endpoints, events: Iterable[Event]) -> Iterator[bool]:
    """Return of each event whether its page asks for a fresh proof: of live mode it does."""
    live = {one.endpoint_id for one in before.by_id.values() if one.mode == "live"}
    for event in events:
        match event:
            case EndpointAdded(endpoint_id=endpoint_id, mode="live"):
                live.add(endpoint_id)
                yield True
            case EndpointChanged() | EndpointSecretRotated() | EndpointEnabled():
                yield event.endpoint_id in live
            case _:
                yield False


def _fold(before: EndpointsPast, past: Sequence[Recorded]) -> EndpointsPast:
    events = [one.event for one in past]
    budgets = before.changes.after(past, COUNTED, [*proven(before.endpoints, events)])
    return EndpointsPast(fold(events, before.endpoints), budgets)


def _parts(past: EndpointsPast) -> int:
    return 10 + len(past.endpoints.by_id) + len(past.endpoints.removed)


ENDPOINTS: Final = Folding(EndpointsPast(), _fold, _parts)
