"""From facts about connect links to their rows."""

from collections.abc import Iterable
from typing import ClassVar

from service.facts.connections import ConnectLinkDeclined, ConnectLinkIssued, ConnectLinkRedeemed
from service.ledger.events import Event, Recorded
from service.ledger.ledger import Write
from service.ledger.sql import queries

_SQL = queries("projections.connect_links")


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
        """Return what this event changes."""
        match recorded.event:
            case ConnectLinkIssued() as event:
                yield Write(
                    _SQL.insert,
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
                yield Write(_SQL.settle, (event.link_id, "redeemed", event.entity_id))
            case ConnectLinkDeclined(link_id=link_id):
                yield Write(_SQL.settle, (link_id, "declined", None))
            case _:
                pass
