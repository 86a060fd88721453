"""What a partner's connection to an entity allows. Pure."""

from datetime import datetime
from typing import NamedTuple

from service.core.errors import Refusal


class Access(NamedTuple):
    """An entity as one partner may see it. `connected_at` None: never connected.

    `erased`: its person's data was erased, and with it the address by which they could sign in.
    """

    entity_id: str
    name: str
    established: bool
    version: int
    connected_at: datetime | None
    disconnected_at: datetime | None
    erased: bool = False

    @property
    def connected(self) -> bool:
        """Whether the partner may write for the entity now."""
        return self.connected_at is not None and self.disconnected_at is None

    def check_write(self) -> None:
        """Refuse with `entity_not_owned` or `partner_disconnected` (contract 5.6)."""
        if self.connected_at is None:
            raise Refusal("entity_not_owned")
        if self.disconnected_at is not None:
            raise Refusal("partner_disconnected")
