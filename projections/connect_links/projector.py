"""From facts about connect links to their rows."""

from collections.abc import Iterable

from service.facts.connections import ConnectLinkDeclined, ConnectLinkIssued, ConnectLinkRedeemed
from service.ledger.events import Recorded
from service.ledger.projector import Projector, Table, Update, Write
from service.ledger.sql import queries

_SQL = queries("projections.connect_links")

CONNECT_LINKS = Table(
    "connect_links",
    """
    link_id text, stream_id uuid, token_hash bytea, partner_id text, state text,
    issued_at timestamptz, expires_at timestamptz, partner_user_id text
    """,
)


class ConnectLinksProjector(Projector):
    """Table `connect_links`."""

    name = "connect_links"
    version = 1
    tables = (CONNECT_LINKS,)
    topics = (ConnectLinkIssued, ConnectLinkRedeemed, ConnectLinkDeclined)

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Return what this event changes."""
        match recorded.event:
            case ConnectLinkIssued() as event:
                yield CONNECT_LINKS.new(
                    event,
                    stream_id=recorded.stream_id,
                    state="issued",
                    issued_at=recorded.meta.at,
                )
            case ConnectLinkRedeemed() as event:
                row = (event.link_id, "redeemed", event.entity_id)
                yield Update(CONNECT_LINKS, _SQL.settle, row)
            case ConnectLinkDeclined(link_id=link_id):
                yield Update(CONNECT_LINKS, _SQL.settle, (link_id, "declined", None))
            case _:
                pass
