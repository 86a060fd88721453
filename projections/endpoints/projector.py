"""From facts about webhook endpoints to the rows that senders and the console read."""

from collections.abc import Iterable
from typing import Final

from service.facts.endpoints import (
    EndpointAdded,
    EndpointChanged,
    EndpointDisabled,
    EndpointEnabled,
    EndpointRemoved,
    EndpointSecretRotated,
)
from service.ledger.events import ERASED, Recorded
from service.ledger.projector import Projector, Table, Update, Write
from service.ledger.sql import queries

_SQL = queries("projections.endpoints")

ENDPOINTS = Table(
    "webhook_endpoints",
    "endpoint_id text, partner_id text, mode text, url text, types text, added_at timestamptz",
)
REMOVED: Final = "removed"
"""Of the column `disabled`, beside the reasons."""


class EndpointsProjector(Projector):
    """Table `webhook_endpoints`: `types` are separated by spaces, and none of them means all."""

    name = "endpoints"
    version = 1
    tables = (ENDPOINTS,)
    topics = (
        *(EndpointAdded, EndpointChanged, EndpointSecretRotated),
        *(EndpointDisabled, EndpointEnabled, EndpointRemoved),
    )
    reads_personal = True

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Return what this event changes."""
        at = recorded.meta.at
        match recorded.event:
            case EndpointAdded() as event:
                yield ENDPOINTS.new(
                    event, url=event.url or ERASED, types=" ".join(event.types), added_at=at
                )
            case EndpointChanged() as event:
                row = (event.endpoint_id, event.url or ERASED, " ".join(event.types))
                yield Update(ENDPOINTS, _SQL.change, row)
            case EndpointSecretRotated(endpoint_id=endpoint_id, secret_version=version):
                yield Update(ENDPOINTS, _SQL.rotate, (endpoint_id, version, at))
            case EndpointDisabled(endpoint_id=endpoint_id, reason=reason):
                yield Update(ENDPOINTS, _SQL.disable, (endpoint_id, reason, at))
            case EndpointEnabled(endpoint_id=endpoint_id):
                yield Update(ENDPOINTS, _SQL.disable, (endpoint_id, None, at))
            case EndpointRemoved(endpoint_id=endpoint_id):
                yield Update(ENDPOINTS, _SQL.disable, (endpoint_id, REMOVED, at))
            case _:
                pass
