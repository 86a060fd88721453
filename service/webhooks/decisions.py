"""What may happen to a partner's webhook endpoints. Pure: state in, events out, or a refusal."""

from collections.abc import Sequence
from typing import Final, Literal

from service.core.errors import Refusal
from service.facts.caller import Mode
from service.facts.endpoints import (
    EndpointAdded,
    EndpointChanged,
    EndpointDisabled,
    EndpointEnabled,
    EndpointRemoved,
    Endpoints,
    EndpointSecretRotated,
    WebhookEndpoint,
)
from service.ledger.events import Event

ENDPOINTS_MAX: Final = 5
"""Of a partner in each mode."""

Reason = Literal["member", "gone", "failing"]


def add(
    known: Endpoints,
    partner_id: str,
    *,
    endpoint_id: str,
    mode: Mode,
    url: str,
    types: Sequence[str],
    after: int,
) -> list[Event]:
    """Add an endpoint; the same id twice, as from a form that is sent again, changes nothing.

    Nor does that of one that was removed.
    """
    if endpoint_id in known.by_id or endpoint_id in known.removed:
        return []
    if sum(one.mode == mode for one in known.by_id.values()) >= ENDPOINTS_MAX:
        message = f"There can be {ENDPOINTS_MAX} endpoints in each mode. Remove one first."
        raise Refusal("limit_reached", message)
    return [EndpointAdded(partner_id, endpoint_id, mode, after, url, tuple(types))]


def change(
    known: Endpoints,
    partner_id: str,
    *,
    endpoint_id: str,
    url: str,
    types: Sequence[str],
    expected_version: int | None = None,
) -> list[Event]:
    """Change where an endpoint is, and what it wants.

    `expected_version` is the one of these when they were chosen: what was changed meanwhile is not
    undone, but refused with `form_outdated`.
    """
    endpoint = find(known, endpoint_id)
    if (endpoint.url, tuple(endpoint.types)) == (url, tuple(types)):
        return []
    if expected_version not in {None, endpoint.changed_version}:
        raise Refusal("form_outdated")
    return [EndpointChanged(partner_id, endpoint_id, url, tuple(types))]


def rotate(known: Endpoints, partner_id: str, *, endpoint_id: str, version: int) -> list[Event]:
    """Replace an endpoint's secret by that of the next version; asking again changes nothing."""
    if find(known, endpoint_id).secret_version + 1 != version:
        return []
    return [EndpointSecretRotated(partner_id, endpoint_id, version)]


def disable(known: Endpoints, partner_id: str, *, endpoint_id: str, reason: Reason) -> list[Event]:
    """Disable an endpoint; one that is, or was removed meanwhile, stays as it is."""
    endpoint = known.by_id.get(endpoint_id)
    if endpoint is None or endpoint.disabled:
        return []
    return [EndpointDisabled(partner_id, endpoint_id, reason)]


def enable(known: Endpoints, partner_id: str, *, endpoint_id: str) -> list[Event]:
    """Enable an endpoint; one that is enabled stays so."""
    if not find(known, endpoint_id).disabled:
        return []
    return [EndpointEnabled(partner_id, endpoint_id)]


def remove(known: Endpoints, partner_id: str, *, endpoint_id: str) -> list[Event]:
    """Remove an endpoint; removing twice changes nothing."""
    if endpoint_id not in known.by_id:
        return []
    return [EndpointRemoved(partner_id, endpoint_id)]


def find(known: Endpoints, endpoint_id: str) -> WebhookEndpoint:
    """Return an endpoint; refuses with `endpoint_not_found`."""
    endpoint = known.by_id.get(endpoint_id)
    if endpoint is None:
        raise Refusal("endpoint_not_found")
    return endpoint
