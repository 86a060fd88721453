"""What may happen to a connect link and to a connection. Pure: state in, events out."""

from typing import Any, NamedTuple
from uuid import UUID

from service.core.errors import Refusal
from service.facts.access import Access
from service.facts.connections import (
    ConnectLinkDeclined,
    ConnectLinkRedeemed,
    EntityConnected,
    EntityDisconnected,
)
from service.ledger.events import Event


class Link(NamedTuple):
    """A link that can still be redeemed."""

    link_id: str
    stream_id: UUID
    partner_id: str


def usable(row: Any) -> Link:  # noqa: ANN401 - a row of connect_links, or None
    """Return the link if it can still be used; refuse otherwise (contract section 3)."""
    if row is None or row["state"] == "declined":
        raise Refusal("connect_token_invalid")
    if row["state"] == "redeemed":
        raise Refusal("connect_token_already_redeemed")
    if row["expired"]:
        raise Refusal("connect_token_expired")
    return Link(row["link_id"], row["stream_id"], row["partner_id"])


def approve(link: Link, access: Access) -> tuple[ConnectLinkRedeemed, EntityConnected]:
    """Connect; after a disconnection a new link may connect again (readings).

    Nobody can sign in for an erased entity, since its address is gone; its connections stay.
    """
    if access.erased:
        raise Refusal("entity_not_found")
    if access.connected:
        raise Refusal("entity_already_linked")
    return (
        ConnectLinkRedeemed(
            link_id=link.link_id, partner_id=link.partner_id, entity_id=access.entity_id
        ),
        EntityConnected(
            partner_id=link.partner_id,
            entity_id=access.entity_id,
            via="connect_link",
            source_id=link.link_id,
        ),
    )


def decline(link: Link) -> ConnectLinkDeclined:
    """Decline the link."""
    return ConnectLinkDeclined(link_id=link.link_id, partner_id=link.partner_id)


def connect_by_staff(
    access: Access, partner_id: str, expected_version: int | None = None
) -> list[Event]:
    """Connect at the customer's request; connecting twice changes nothing.

    `expected_version` is the connection's when this was asked for; another one is refused with
    `form_outdated`.
    """
    if access.erased:
        raise Refusal("entity_not_found")
    if not access.established:
        raise Refusal("entity_state", "This business has not finished its onboarding.")
    if access.connected:
        return []
    _refuse_other(access, expected_version)
    return [EntityConnected(partner_id=partner_id, entity_id=access.entity_id, via="staff")]


def disconnect(access: Access, partner_id: str, expected_version: int | None = None) -> list[Event]:
    """End a connection; refuses with `entity_not_owned` where there never was one.

    `expected_version` is the connection's when this was asked for: one that began later is not
    ended, but refused with `form_outdated`.
    """
    if not access.version:
        raise Refusal("entity_not_owned", "This partner has no connection to this entity.")
    if not access.connected:
        return []
    _refuse_other(access, expected_version)
    return [EntityDisconnected(partner_id=partner_id, entity_id=access.entity_id)]


def _refuse_other(access: Access, expected_version: int | None) -> None:
    if expected_version is not None and access.version != expected_version:
        raise Refusal("form_outdated")
