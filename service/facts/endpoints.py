"""Facts about webhook endpoints, to which partners' events go; the state folded from them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar
from uuid import UUID

import msgspec

from service.core.ids import stream_id
from service.ledger.events import Event


class EndpointAdded(Event, frozen=True):
    """A partner added an endpoint; events after `after`, a position of its mode's log, go there.

    `types` are those of the events that it wants; none: all. The URL is the partner's own, and
    encrypted under the partner's key.
    """

    personal: ClassVar = ("url",)
    partner_id: str
    endpoint_id: str
    mode: str
    after: int
    url: str | None = None
    types: Sequence[str] = ()


class EndpointChanged(Event, frozen=True):
    """An endpoint's URL or event types changed; the fields are the new values."""

    personal: ClassVar = ("url",)
    partner_id: str
    endpoint_id: str
    url: str | None = None
    types: Sequence[str] = ()


class EndpointSecretRotated(Event, frozen=True):
    """An endpoint's secret was replaced. For a day, the previous one signs as well."""

    partner_id: str
    endpoint_id: str
    secret_version: int


class EndpointDisabled(Event, frozen=True):
    """An endpoint was paused. Once it is resumed, it continues where it stopped.

    `reason` is `member`, `gone` (it answered 410) or `failing`: it took nothing for three days, or
    more than a thousand events that it refused were set aside.
    """

    partner_id: str
    endpoint_id: str
    reason: str


class EndpointEnabled(Event, frozen=True):
    """An endpoint that was paused gets events again."""

    partner_id: str
    endpoint_id: str


class EndpointRemoved(Event, frozen=True):
    """An endpoint was removed for good."""

    partner_id: str
    endpoint_id: str


class WebhookEndpoint(msgspec.Struct, frozen=True):
    """An endpoint as its partner's stream knows it. `disabled` says why it is paused, empty if not.

    `changed_version` is that of the last event that set its URL and types.
    """

    endpoint_id: str
    mode: str
    url: str | None
    types: Sequence[str] = ()
    secret_version: int = 1
    disabled: str = ""
    changed_version: int = 0


class Endpoints(msgspec.Struct, frozen=True):
    """A partner's endpoints that were not removed, by their ids; and the ids of those that were."""

    version: int = 0
    by_id: Mapping[str, WebhookEndpoint] = msgspec.field(default_factory=dict[str, WebhookEndpoint])
    removed: frozenset[str] = frozenset()


def endpoints_stream(partner_id: str) -> UUID:
    """Return the id of the stream of a partner's endpoints."""
    return stream_id("endpoints", partner_id)


def fold(events: Iterable[Event], before: Endpoints | None = None) -> Endpoints:
    """Fold the stream of a partner's endpoints; `before` is their state before these events."""
    before = before or Endpoints()
    version, known, removed = before.version, dict(before.by_id), set(before.removed)
    for event in events:
        version += 1
        match event:
            case EndpointAdded(endpoint_id=endpoint_id):
                known[endpoint_id] = WebhookEndpoint(
                    endpoint_id, event.mode, event.url, event.types, changed_version=version
                )
            case EndpointRemoved(endpoint_id=endpoint_id):
                del known[endpoint_id]
                removed.add(endpoint_id)
            case (
                EndpointChanged() | EndpointSecretRotated() | EndpointDisabled() | EndpointEnabled()
            ):
                known[event.endpoint_id] = _evolve(known[event.endpoint_id], event, version)
            case _:
                raise TypeError(f"{type(event).__name__} is not a fact about an endpoint")
    return Endpoints(version, known, frozenset(removed))


def _evolve(
    endpoint: WebhookEndpoint,
    event: EndpointChanged | EndpointSecretRotated | EndpointDisabled | EndpointEnabled,
    version: int,
) -> WebhookEndpoint:
    change = msgspec.structs.replace
    match event:
        case EndpointChanged():
            return change(endpoint, url=event.url, types=event.types, changed_version=version)
        case EndpointSecretRotated():
            return change(endpoint, secret_version=event.secret_version)
        case EndpointDisabled():
            return change(endpoint, disabled=event.reason)
        case _:  # it was enabled
            return change(endpoint, disabled="")
