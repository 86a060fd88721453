"""Facts about who may act for whom: connections, and the links that make them."""

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from service.core.ids import stream_id
from service.ledger.events import Event


class EntityConnected(Event, frozen=True):
    """An entity allowed a partner to act for it.

    `via` is `onboarding`, `connect_link`, `fixture`, `sandbox` (by its partner, in test mode only)
    or `staff`. `source_id` is the onboarding or the connect link; None in older events.
    """

    partner_id: str
    entity_id: str
    via: str
    source_id: str | None = None


class EntityDisconnected(Event, frozen=True):
    """An entity ended a connection. No claim follows in the ledger until it connects again."""

    partner_id: str
    entity_id: str


class ConnectLinkIssued(Event, frozen=True):
    """A partner requested a connect link. Only the SHA-256 of its token is stored (decision 10).

    `expires_at` is None in test mode, where the link cannot be redeemed.
    """

    personal: ClassVar = ("label",)
    link_id: str
    partner_id: str
    partner_user_id: str
    token_hash: bytes
    expires_at: datetime | None = None
    label: str | None = None


class ConnectLinkRedeemed(Event, frozen=True):
    """A customer approved a connect link for one of their entities."""

    link_id: str
    partner_id: str
    entity_id: str


class ConnectLinkDeclined(Event, frozen=True):
    """A customer declined a connect link."""

    link_id: str
    partner_id: str


def connection_stream(mode: str, partner_id: str, entity_id: str) -> UUID:
    """Return the id of a connection's stream, which is also that of its lock (decision 3)."""
    return stream_id("connection", mode, partner_id, entity_id)


def link_stream(mode: str, link_id: str) -> UUID:
    """Return the id of a connect link's stream."""
    return stream_id("connect-link", mode, link_id)
