"""From facts about connect links to their rows."""

from collections.abc import Iterable
from typing import ClassVar

from service.connections.events import ConnectLinkDeclined, ConnectLinkIssued, ConnectLinkRedeemed
from service.ledger.events import Event, Recorded
from service.ledger.ledger import Write
from service.ledger.sql import Sql

_INSERT = Sql("projections.connect_links", "insert")
_SETTLE = Sql("projections.connect_links", "settle")


class ConnectLinksProjector:
    """Table `connect_links`."""

    name = "connect_links"
    version = 1
    tables: ClassVar[tuple[str, ...]] = ("connect_links",)
    topics: ClassVar[tuple[type[Event], ...]] = (
        ConnectLinkIssued,
        ConnectLinkRedeemed,
        ConnectLinkDeclined,
    )
    reads_personal = False

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Answer what this event changes."""
        match recorded.event:
            case ConnectLinkIssued() as event:
                yield Write(
                    _INSERT,
                    (
                        event.link_id,
                        recorded.stream_id,
                        event.token_hash,
                        event.partner_id,
                        "issued",
                        recorded.meta.at,
                        event.expires_at,
                        event.partner_user_id,
                    ),
                )
            case ConnectLinkRedeemed() as event:
                yield Write(_SETTLE, (event.link_id, "redeemed", event.entity_id))
            case ConnectLinkDeclined(link_id=link_id):
                yield Write(_SETTLE, (link_id, "declined", None))
            case _:
                pass
