"""What a partner's connection to an entity allows. Pure."""

from datetime import datetime
from typing import NamedTuple

from service.core.errors import Refusal


class Access(NamedTuple):
    """An entity as one partner may see it.

    `version` is that of the connection's last event, at `changed_at`, by `changed_by`, an actor; 0:
    never connected.
    `connected`: the partner may write for the entity now. `erased`: its person's data was erased,
    and with it the address by which they could sign in.
    """

    entity_id: str
    name: str
    established: bool
    version: int = 0
    connected: bool = False
    changed_at: datetime | None = None
    changed_by: str = ""
    erased: bool = False

    @property
    def connected_at(self) -> datetime | None:
        """Since when the partner may write for the entity; None: it may not."""
        return self.changed_at if self.connected else None

    @property
    def disconnected_at(self) -> datetime | None:
        """Since when it may no more; None: it may, or never could."""
        return None if self.connected else self.changed_at

    @property
    def is_ended_by_customer(self) -> bool:
        """Whether the customer disconnected the partner, not our team on their behalf."""
        return self.disconnected_at is not None and self.changed_by.startswith("customer:")

    def check_write(self) -> None:
        """Refuse with `entity_not_owned` or `partner_disconnected` (contract 5.6)."""
        if not self.version:
            raise Refusal("entity_not_owned")
        if not self.connected:
            raise Refusal("partner_disconnected")
