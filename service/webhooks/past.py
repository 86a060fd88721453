"""What commands and sending know of the stream of a partner's endpoints."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from service.facts.changes import Changes
from service.facts.endpoints import (
    EndpointAdded,
    EndpointChanged,
    EndpointEnabled,
    Endpoints,
    EndpointSecretRotated,
    fold,
)
from service.ledger.events import Recorded
from service.ledger.folding import Folding

COUNTED: Final = (EndpointAdded, EndpointChanged, EndpointSecretRotated, EndpointEnabled)
"""The changes of which a partner's people can make so many a day."""


class EndpointsPast(NamedTuple):
    """A partner's endpoints, and what its people have changed of late."""

    endpoints: Endpoints = Endpoints()
    changes: Changes = Changes()


def _fold(before: EndpointsPast, past: Sequence[Recorded]) -> EndpointsPast:
    endpoints = fold((one.event for one in past), before.endpoints)
    return EndpointsPast(endpoints, before.changes.after(past, COUNTED))


def _parts(past: EndpointsPast) -> int:
    return 10 + len(past.endpoints.by_id) + len(past.endpoints.removed)


ENDPOINTS: Final = Folding(EndpointsPast(), _fold, _parts)
